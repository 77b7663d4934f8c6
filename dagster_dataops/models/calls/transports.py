"""Send requests to models: over HTTP, or through an object of the user."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import orjson

from dagster_dataops.errors import (
    BadReplyError,
    CallTimeoutError,
    DefinitionError,
    MissingExtraError,
    ModelError,
    UnreachableError,
)
from dagster_dataops.models.attached_files import FormFile
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.calls.redirects import following
from dagster_dataops.models.calls.reply_body import json_object
from dagster_dataops.models.calls.server_address import shown_address
from dagster_dataops.models.calls.status_errors import error_in, error_of
from dagster_dataops.operators.secrets.secret_texts import without_logins

_REQUESTS: Final = "x-ratelimit-limit-requests"
_TOKENS: Final = "x-ratelimit-limit-tokens"
_JSON_TYPE: Final = "application/json"


class Transport(Protocol):
    """Sends requests. It belongs to one event loop.

    Attributes:
        announced: Requests and tokens a minute that the server allows, by its last reply; 0 for
            none.
    """

    announced: tuple[float, float]

    async def send(
        self, path: str, request: dict[str, Any], sent: Callable[[], object]
    ) -> dict[str, Any]:
        """Send a request and return the JSON of the reply.

        Args:
            path: Path of the endpoint below the address, such as ``/chat/completions``.
            request: The JSON of the request.
            sent: Called once it has a connection and is written; at once without a limit a minute.

        Raises:
            ModelError: There is no usable reply, or it has an error. An error in a reply with
                status 200 has it as `ModelError.body`.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def transport_of(client: ModelClient) -> Transport:
    """Return the transport of a client; call it in the event loop that will use it.

    Raises:
        MissingExtraError: aiohttp is not installed.
        DefinitionError: The object of the client cannot make calls.
    """
    return _HttpTransport(client) if client.complete is None else _ObjectTransport(client)


def http_library() -> Any:
    """Return the module aiohttp.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import aiohttp
    except ImportError:
        raise MissingExtraError("a call of a model over HTTP", "llm") from None
    return aiohttp


class _HttpTransport:
    """Connections to an OpenAI-compatible server."""

    def __init__(self, client: ModelClient) -> None:
        aiohttp = http_library()
        self._failures = (aiohttp.ClientError, OSError)
        self._no_connection = aiohttp.ClientConnectorError
        self.announced = (0.0, 0.0)
        self._client = client
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_note_sent)
        rates = client.rates
        self._is_traced = bool(rates.requests_per_minute or rates.tokens_per_minute)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=client.timeout),
            trace_configs=[trace] if self._is_traced else [],  # it costs a tenth of a call
        )

    async def send(
        self, path: str, request: dict[str, Any], sent: Callable[[], object]
    ) -> dict[str, Any]:
        url = self._client.url(path)
        if not self._is_traced:
            sent()
        try:
            status, headers, body = await self._posted(url, _body_of(request), sent)
        except TimeoutError:
            reason = f"no reply of {shown_address(url)} within {self._client.timeout:g} s"
            raise CallTimeoutError(reason) from None
        except self._failures as error:
            reason = f"{shown_address(url)}: {type(error).__name__}: {without_logins(str(error))}"
            unreachable = UnreachableError(reason)
            unreachable.connected = not isinstance(error, self._no_connection)
            raise unreachable from None
        if status >= 400:
            raise error_of(status, headers, body)
        if _REQUESTS in headers or _TOKENS in headers:
            self.announced = (_limit(headers, _REQUESTS), _limit(headers, _TOKENS))
        reply = json_object(body, shown_address(url), headers.get("content-type", ""))
        return _without_error(reply, headers)

    async def _posted(
        self, url: str, body: Callable[[], Any], sent: Callable[[], object]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of a reply; redirects are followed with the body."""
        headers = self._client.all_headers
        async with following(
            self._session,
            "POST",
            url,
            headers,
            lambda: {"data": body(), "trace_request_ctx": sent},
        ) as response:
            return response.status, response.headers, await response.read()

    async def close(self) -> None:
        await self._session.close()


def _body_of(request: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that makes the body of a request: a form if it has a file, else JSON."""
    aiohttp = http_library()
    if isinstance(request.get("file"), FormFile):
        return lambda: _form_of(aiohttp.FormData(), request)
    text = orjson.dumps(request)
    return lambda: aiohttp.BytesPayload(text, content_type=_JSON_TYPE)


def _form_of(form: Any, request: dict[str, Any]) -> Any:
    for name, value in request.items():
        if isinstance(value, FormFile):
            form.add_field(name, value.data, filename=value.name, content_type=value.media_type)
        else:
            form.add_field(name, value if isinstance(value, str) else orjson.dumps(value).decode())
    return form


async def _note_sent(_: object, context: Any, __: object) -> None:
    context.trace_request_ctx()


def _limit(headers: Mapping[str, str], name: str) -> float:
    """Return a limit a minute in the headers of a reply; 0 for none."""
    try:
        return max(0.0, float(headers.get(name, 0)))
    except ValueError:
        return 0.0


def _without_error(reply: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    """Return a reply; raise the error that it has."""
    error = error_in(reply, headers)
    if error is None:
        return reply
    error.body = reply
    raise error


class _ObjectTransport:
    """An object with ``complete(request)``, or a function of a prompt."""

    def __init__(self, client: ModelClient) -> None:
        self._timeout = client.timeout
        self.announced = (0.0, 0.0)
        complete = getattr(client.complete, "complete", None)
        self._takes_request = callable(complete)
        self._call = complete if callable(complete) else client.complete
        if not callable(self._call):
            reason = (
                f"a client of type {type(client.complete).__name__} cannot make calls; give a "
                "ModelClient, an object with complete(request), or a function of the prompt"
            )
            raise DefinitionError(reason)

    async def send(
        self, path: str, request: dict[str, Any], sent: Callable[[], object]
    ) -> dict[str, Any]:
        sent()
        argument = request if self._takes_request else _prompt_of(path, request)
        try:
            returned = self._call(argument)
            if inspect.isawaitable(returned):
                async with asyncio.timeout(self._timeout):
                    returned = await returned
        except TimeoutError:
            reason = f"the client gave no reply within {self._timeout:g} s"
            raise CallTimeoutError(reason) from None
        except ModelError:
            raise
        except Exception as error:
            raise _known_error(error) from error
        return _without_error(_reply_json(returned), {})

    async def close(self) -> None:
        return None


def _prompt_of(path: str, request: dict[str, Any]) -> str:
    """Return the text of the last message of a chat."""
    if "messages" not in request:
        reason = f"a client that is a function of a prompt cannot answer {path}"
        raise DefinitionError(reason)
    return str(request["messages"][-1].get("content") or "")


def _known_error(error: Exception) -> Exception:
    """Return the error of this package for an error of a client library with a status."""
    status = getattr(error, "status_code", None)
    if type(status) is not int:
        return error
    headers = getattr(getattr(error, "response", None), "headers", {})
    body = {"error": {"message": str(error), "code": getattr(error, "code", None)}}
    return error_of(status, headers, orjson.dumps(body, default=str))


def _reply_json(returned: Any) -> dict[str, Any]:
    if isinstance(returned, str):
        message = {"role": "assistant", "content": returned}
        return {"choices": [{"message": message, "finish_reason": "stop"}]}
    if hasattr(returned, "model_dump"):  # of the client libraries, such as openai
        returned = returned.model_dump(mode="json")
    if isinstance(returned, Mapping):
        return dict(returned)
    reason = f"the client returned a {type(returned).__name__}, not JSON of a chat completion"
    raise BadReplyError(reason)
