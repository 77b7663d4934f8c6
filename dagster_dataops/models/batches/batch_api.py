"""`BatchApi`: the endpoints of a server for batches of requests, which it answers within a day."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import orjson

from dagster_dataops.errors import TransientModelError, UnreachableError
from dagster_dataops.foundation.concurrency.retrying import Backoff
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.calls.redirects import following
from dagster_dataops.models.calls.reply_body import json_object
from dagster_dataops.models.calls.server_address import shown_address
from dagster_dataops.models.calls.status_errors import error_of
from dagster_dataops.models.calls.transports import http_library

ENDPOINT: Final = "/v1/chat/completions"
_PAGE: Final = 100
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 30.0
_ENDED: Final = frozenset({"completed", "expired", "cancelled", "failed"})
_USELESS: Final = frozenset({"failed", "cancelled"})
_MARK: Final = "dataops"  # the key of the mark in the metadata of a batch


class BatchStatus(NamedTuple):
    """The state of a batch.

    Attributes:
        ended: Whether the server is done with it.
        files: Ids of the files with its replies.
        fault: Why the server refused it; empty if it did not.
    """

    ended: bool
    files: list[str]
    fault: str


class BatchApi:
    """The endpoints of a server for batches, as an asynchronous context manager.

    Address, key, headers, time limit and tries are those of the client.
    """

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._http: Any = None

    async def __aenter__(self) -> Self:
        self._aiohttp = aiohttp = http_library()
        timeout = aiohttp.ClientTimeout(total=None, sock_read=self._client.timeout)
        self._http = aiohttp.ClientSession(timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def submit(self, requests: Path, mark: str) -> str:
        """Submit a file of requests, one a line, and return the id of the batch.

        The mark is written to the metadata of the batch, so that it can be found.
        """
        file = await self._json("POST", "/files", form=requests)
        request = {
            "input_file_id": file["id"],
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {_MARK: mark},
        }
        return str((await self._json("POST", "/batches", body=request))["id"])

    async def find(self, mark: str) -> str | None:
        """Return the id of a batch that was submitted with a mark; ``None`` if there is none."""
        after = ""
        while True:
            listed = await self._json("GET", f"/batches?limit={_PAGE}{after}")
            for batch in listed["data"]:
                is_marked = (batch.get("metadata") or {}).get(_MARK) == mark
                if is_marked and batch["status"] not in _USELESS:
                    return str(batch["id"])
            if not listed.get("has_more") or not listed["data"]:
                return None
            after = f"&after={listed['data'][-1]['id']}"

    async def status(self, batch: str) -> BatchStatus:
        """Return the state of a batch."""
        reply = await self._json("GET", f"/batches/{batch}")
        state = reply["status"]
        files = [reply.get(f"{kind}_file_id") for kind in ("output", "error")]
        fault = ""
        if state == "failed":
            fault = orjson.dumps(reply.get("errors")).decode()[:500]
        return BatchStatus(state in _ENDED, [file for file in files if file], fault)

    async def cancel(self, batch: str) -> None:
        """Cancel a batch; nothing happens to one that has ended.

        Raises:
            ModelError: The server refused it, or cannot be reached.
        """
        if not (await self.status(batch)).ended:
            await self._json("POST", f"/batches/{batch}/cancel")

    async def lines(self, file: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the lines of a file of replies."""
        address = self._client.url(f"/files/{file}/content")
        async with self._opened("GET", address, dict) as response:
            if response.status >= 400:
                raise error_of(response.status, response.headers, await response.read())
            rest = b""
            async for chunk in response.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    if line.strip():
                        yield json_object(line, shown_address(address))
            if rest.strip():
                yield json_object(rest, shown_address(address))

    async def _json(
        self, method: str, path: str, *, body: object = None, form: Path | None = None
    ) -> dict[str, Any]:
        """Return the JSON of a reply; try again while the server fails."""
        # A batch that was submitted without a reply is found again, not submitted again.
        tries = 1 if path == "/batches" and method == "POST" else self._client.tries
        backoff = Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        number = 0
        while True:
            number += 1
            try:
                return await self._once(method, path, body, form)
            except TransientModelError as error:
                if number >= tries:
                    raise
                await asyncio.sleep(max(backoff.pause(number), error.retry_after or 0.0))

    async def _once(
        self, method: str, path: str, body: object, form: Path | None
    ) -> dict[str, Any]:
        address = self._client.url(path)
        try:
            with ExitStack() as files:
                options = partial(self._options, body, form, files)
                async with self._opened(method, address, options) as response:
                    raw = await response.read()
        except (self._aiohttp.ClientError, OSError) as error:
            reason = f"{shown_address(address)}: {type(error).__name__}: {error}"
            raise UnreachableError(reason) from None
        if response.status >= 400:
            raise error_of(response.status, response.headers, raw)
        return json_object(raw, shown_address(address), response.headers.get("content-type", ""))

    def _opened(
        self, method: str, address: str, options: Callable[[], Mapping[str, Any]]
    ) -> AbstractAsyncContextManager[Any]:
        return following(self._http, method, address, self._client.all_headers, options)

    def _options(self, body: object, form: Path | None, files: ExitStack) -> Mapping[str, Any]:
        """Return the body of a request; a file is opened anew, because sending closes it."""
        if form is None:
            return {"json": body}
        fields = self._aiohttp.FormData()
        fields.add_field("purpose", "batch")
        fields.add_field("file", files.enter_context(form.open("rb")), filename=form.name)
        return {"data": fields}
