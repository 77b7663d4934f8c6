"""Map the status and body of a failed call to an error, also of one with status 200."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.errors import (
    AuthenticationFailedError,
    BadRequestError,
    ContentFilteredError,
    ContextTooLongError,
    ModelError,
    ModelMissingError,
    QuotaExhaustedError,
    RateLimitedError,
    ServerFaultError,
)

_MAX_TEXT: Final = 500
_OVERLOADED: Final = frozenset({429, 503, 529})
_STATUSES: Final = range(400, 600)
_PLAIN: Final = (
    "message",
    "detail",
    "msg",
    "error_message",
    "error_description",
    "title",
    "errors",
)
_ANSWERS: Final = ("choices", "data", "output", "content", "candidates")  # also of other APIs
_CODES: Final = ("code", "type", "status", "error_code", "reason")
_CODES_OF: Final[Mapping[type[ModelError], str]] = {
    QuotaExhaustedError: "insufficient_quota insufficient_credits insufficient_balance "
    "billing_error billing_hard_limit_reached payment_required",
    AuthenticationFailedError: "invalid_api_key authentication_error unauthenticated unauthorized "
    "permission_error permission_denied forbidden",
    RateLimitedError: "rate_limit_exceeded rate_limit_error rate_limited resource_exhausted "
    "too_many_requests",
    ContextTooLongError: "context_length_exceeded",
    ContentFilteredError: "content_filter",
    ModelMissingError: "model_not_found",
}
_BY_CODE: Final = {code: kind for kind, codes in _CODES_OF.items() for code in codes.split()}
# Codes that count only with status 200: with another one, the status says more.
_BY_CODE_ALONE: Final[Mapping[str, type[ModelError]]] = {
    "invalid_request_error": BadRequestError,
    "invalid_argument": BadRequestError,
    "not_found_error": ModelMissingError,
}
_BY_STATUS: Final[Mapping[int, type[ModelError]]] = {
    401: AuthenticationFailedError,
    402: QuotaExhaustedError,
    403: AuthenticationFailedError,
    404: ModelMissingError,
    408: ServerFaultError,
    409: ServerFaultError,
    429: RateLimitedError,
}


class _ServerError(NamedTuple):
    """What a server says about an error.

    Attributes:
        message: Its words; empty if it has none.
        codes: Codes and types, in lower case.
        status: The status that it names; 0 for none.
    """

    message: str
    codes: tuple[str, ...]
    status: int


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """Return the error for a reply with a status of 400 or more.

    The names of headers are in lower case, or the mapping ignores case. The body may be JSON with
    an error in one of the usual forms.
    """
    said = None
    with suppress(orjson.JSONDecodeError):
        said = _said(orjson.loads(body))
    said = said or _ServerError("", (), 0)
    plain = body[:_MAX_TEXT].decode(errors="replace")
    message = said.message if b'"error"' in body and said.message else plain
    known = [_BY_CODE[code] for code in said.codes if code in _BY_CODE]
    kind = known[0] if known else _kind_of_status(status)
    return _error_of(kind, f"status {status}: {message[:_MAX_TEXT]}", status, headers)


def error_in(reply: Mapping[str, Any], headers: Mapping[str, str]) -> ModelError | None:
    """Return the error that a reply with status 200 has; ``None`` if it has none.

    The code or the type decides, as the same status would. An unknown one is a fault of the server.
    Headers are as of `error_of`.
    """
    said = _said(reply)
    if said is None:
        return None
    known = [_BY_CODE[code] for code in said.codes if code in _BY_CODE]
    alone = [_BY_CODE_ALONE[code] for code in said.codes if code in _BY_CODE_ALONE]
    of_status = [_kind_of_status(said.status)] if said.status else []
    kind = [*known, *of_status, *alone, ServerFaultError][0]
    codes = f" ({', '.join(said.codes)})" if said.codes else ""
    status = said.status or (429 if kind is RateLimitedError else 0)
    return _error_of(kind, f"an error with status 200: {said.message}{codes}", status, headers)


def _error_of(
    kind: type[ModelError], reason: str, status: int, headers: Mapping[str, str]
) -> ModelError:
    error = kind(reason)
    error.retry_after = retry_after(headers)
    error.overloaded = status in _OVERLOADED
    if request := headers.get("x-request-id"):
        error.details["request_id"] = request
    return error


def _kind_of_status(status: int) -> type[ModelError]:
    kind = _BY_STATUS.get(status)
    return kind or (ServerFaultError if status >= 500 else BadRequestError)


def _said(reply: Any) -> _ServerError | None:
    """Return the error in the JSON of a reply, or in one of its choices; ``None`` without one."""
    if isinstance(reply, list) and reply:  # as of Gemini
        reply = reply[0]
    if not isinstance(reply, dict):
        return None
    if reply.get("error"):
        return _described(reply["error"], reply)
    if any(reply.get(name) for name in _ANSWERS):
        return _said_in_choice(reply.get("choices"))
    return _said_plainly(reply)


def _said_in_choice(choices: Any) -> _ServerError | None:
    """Return the error in one of the choices of a reply, as of OpenRouter."""
    if not isinstance(choices, list):
        return None
    errors = [
        choice["error"] for choice in choices if isinstance(choice, dict) and choice.get("error")
    ]
    return _described(errors[0], {}) if errors else None


def _said_plainly(reply: Mapping[str, Any]) -> _ServerError | None:
    """Return the error that an object without an answer is."""
    errors = reply.get("errors")
    if isinstance(errors, list) and errors:
        return _described(errors, reply)
    said = _described(reply, {})
    texts = any(isinstance(reply.get(name), (str, list)) and reply[name] for name in _PLAIN)
    return said if texts or said.status else None


def _described(error: Any, around: Mapping[str, Any]) -> _ServerError:
    """Return what an object, text or list says; the object around it may have the code."""
    if isinstance(error, list):
        error = error[0]
    holders = [place for place in (error, around) if isinstance(place, dict)]
    plain = [holder[name] for holder in holders for name in _PLAIN if holder.get(name)]
    texts = [error, *plain] if isinstance(error, str) else plain
    named = [holder[name] for holder in holders for name in _CODES if holder.get(name)]
    if isinstance(error, str) and " " not in error:
        named.append(error)
    words = [code.lower() for code in named if isinstance(code, str) and not code.isdigit()]
    numbers = [int(code) for code in named if type(code) is int or str(code).isdigit()]
    return _ServerError(
        message="; ".join(dict.fromkeys(_shown(text) for text in texts or [error]))[:_MAX_TEXT],
        codes=tuple(word for word in dict.fromkeys(words) if word != "error"),
        status=next((number for number in numbers if number in _STATUSES), 0),
    )


def _shown(said: Any) -> str:
    return said if isinstance(said, str) else json.dumps(said, default=str, ensure_ascii=False)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers ask to wait; ``None`` if they do not.

    The headers are ``retry-after-ms``, or ``retry-after`` in seconds or as a date.
    """
    with suppress(ValueError, TypeError):
        if headers.get("retry-after-ms"):
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
    text = headers.get("retry-after")
    if text is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    return None
