"""`BatchDelivery`: the requests of an operator go to the server in batches, crash-safe.

``batches/`` in the folder of the node holds ``state.json`` and a file of requests for each batch,
which is a *part*. A part goes through three states, each written durably before the next step:
intended (the file is complete, the batch has no id), submitted (it has one), collected (its replies
are in the reply store). A process that finds a part that is intended first asks the server for a
batch with the mark of the part. So no batch is submitted twice, wherever a process dies.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.datasets.durable_files import make_folder, storage, write_durably
from dagster_dataops.errors import (
    BadReplyError,
    BadRequestError,
    ModelError,
    StorageError,
    TransientModelError,
)
from dagster_dataops.foundation.format_numbers import read_number
from dagster_dataops.foundation.places.confined_names import confined
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.batches.batch_api import ENDPOINT, BatchApi
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.calls.dialect import Dialect
from dagster_dataops.models.calls.status_errors import error_in, error_of
from dagster_dataops.models.replies.reply import offers_tools, reply_of
from dagster_dataops.models.replies.reply_store import ReplyStore
from dagster_dataops.models.replies.token_estimates import estimate, reply_tokens
from dagster_dataops.models.replies.usage import counted_usage, usage_of
from dagster_dataops.operators.outcomes.record_context import StopRun

FOLDER: Final = "batches"
MOST_REQUESTS: Final = 50_000  # of a part
MOST_BYTES: Final = 190_000_000
_MOST_ROUNDS: Final = 20  # of one result
_TRIES: Final = 3  # of a request that the server failed to answer


class DeferredRequest(BaseException):
    """Raised for a request that is noted for a batch; its record is processed later."""


class BatchDelivery:
    """The batches of the node in a folder, whose replies go to the store.

    ``published`` is a text that changes when a result of the node is published.
    """

    def __init__(
        self, folder: Path, client: ModelClient, store: ReplyStore, published: str = ""
    ) -> None:
        self._folder = folder / FOLDER
        self._client, self._store = client, store
        self._address = client.server.address
        make_folder(self._folder)
        self._state = BatchState(folder)
        self._state.begin(published)
        self._dialect = Dialect()
        for text in self._state.refusals:
            self._dialect.learn(BadRequestError(text))

    def error_of(self, key: str) -> ModelError | None:
        """Return the error with which the server answered a request for good."""
        known = self._state.failed.get(key)
        if known is None or known.get("address", self._address) != self._address:
            return None
        error = _error_of(known)
        if isinstance(error, TransientModelError) and known["tries"] < _TRIES:
            return None
        return error

    async def advance(self) -> None:
        """Submit pending requests, and collect the replies of the server.

        Raises:
            StopRun: The server has not answered everything.
        """
        parts = self._state.parts
        if not self._state.open_parts:
            return
        self._check_addresses()
        async with BatchApi(self._client) as api:
            await self._submit(api)
            for digest, part in parts.items():
                if not part["collected"]:
                    await self._collect(api, digest, part)
        self._store.take_over()
        if self._state.open_parts:
            raise self._stop()

    async def send(self, requests: "Parts") -> None:
        """Submit new requests.

        Raises:
            StopRun: Always, if there are any: the server answers later.
        """
        if not requests.count:
            return
        if self._state.rounds >= _MOST_ROUNDS:
            reason = (
                f"after {_MOST_ROUNDS} rounds of batches, the records still make "
                f"{counted(requests.count, 'new requests')}; the prompts of a record must be the "
                "same in each run"
            )
            raise StopRun(reason)
        self._state.intend(requests.finish(), self._address)
        async with BatchApi(self._client) as api:
            await self._submit(api)
        raise self._stop()

    def parts(self) -> "Parts":
        """Return an empty list of requests."""
        return Parts(self._folder, self._dialect)

    async def _submit(self, api: BatchApi) -> None:
        for digest, part in self._state.parts.items():
            if part["id"] is None:
                batch = await api.find(part["mark"])
                path = self._folder / f"{digest}.jsonl"
                part["id"] = batch or await api.submit(path, part["mark"])
                self._state.save()

    async def _collect(self, api: BatchApi, digest: str, part: dict[str, Any]) -> None:
        """Take the replies of a part into the store if the server is done with it."""
        status = await api.status(part["id"])
        if status.fault:
            reason = f"the server refused batch {part['id']}: {status.fault}"
            self._state.forget(digest)
            raise StopRun(reason)
        if not status.ended:
            return
        asked = dict(_asked_in(self._folder / f"{digest}.jsonl", self._client.media_tokens))
        for file in status.files:
            async for line in api.lines(file):
                self._take(line, asked)
        part["collected"] = True
        self._state.save()
        (self._folder / f"{digest}.jsonl").unlink(missing_ok=True)

    def _check_addresses(self) -> None:
        """Raise `StopRun` if batches wait for another server than that of the client."""
        for part in self._state.open_parts:
            there = part.get("address", self._address)
            if there != self._address:
                reason = (
                    f"batch {part['id']} waits at {there}, and the client asks {self._address}; "
                    "run with a client of that address, or cancel its batches first"
                )
                raise StopRun(reason)

    def _take(self, line: dict[str, Any], asked: Mapping[str, "_Asked"]) -> None:
        """Take the reply to one request into the store, or note its error."""
        key, _, start = line["custom_id"].partition("-")
        response = line.get("response") or {}
        status = response.get("status_code") or 500
        body = response.get("body") or {"error": line.get("error")}
        if status < 400:
            self._take_reply(key, int(start), asked[line["custom_id"]], body)
            return
        error = error_of(status, {}, orjson.dumps(body))
        if isinstance(error, BadRequestError) and self._dialect.learn(error):
            self._state.refusals.append(str(error))
            return
        self._note_failure(key, status, body)

    def _take_reply(self, key: str, start: int, asked: "_Asked", body: Any) -> None:
        """Store a reply; record one without an answer as a failure, with its cost."""
        share = self._client.batch_share
        estimated = counted_usage(body, asked.tokens).estimated if isinstance(body, dict) else None
        try:
            _check_reply(body, offers=asked.offers_tools)
        except ModelError:
            if isinstance(body, dict) and (usage_of(body) or reply_tokens(body)):
                self._store.spend(
                    start, asked.model, body, share=share, estimated=estimated, owed=True
                )
            self._note_failure(key, 200, {"offers_tools": asked.offers_tools, "reply": body})
            return
        if self._store.get(key) is None:  # else this part was collected in part
            self._store.put(key, start, asked.model, body, share=share, estimated=estimated)

    def _note_failure(self, key: str, status: int, body: object) -> None:
        tries = self._state.failed.get(key, {"tries": 0})["tries"] + 1
        noted = {"status": status, "body": body, "tries": tries, "address": self._address}
        self._state.failed[key] = noted

    def progress(self) -> str:
        """Return how much of the requests the server has answered."""
        parts = self._state.parts.values()
        done = sum(part["collected"] for part in parts)
        requests = sum(part["requests"] for part in parts if not part["collected"])
        return f"answered batches: {done} of {len(parts)}; requests without a reply: {requests:,}"

    def _stop(self) -> StopRun:
        reason = f"{self.progress()}; run again to collect the replies"
        return StopRun(reason, waits=True)


_FORMAT: Final = 1  # of the file of the batches, which notes later ones alone
# The fields of this file, and their types. Others are kept as they are.
_STATE: Final[dict[str, type[Any]]] = {
    "parts": dict,
    "failed": dict,
    "refusals": list,
    "rounds": int,
    "published": str,
}


class BatchState:
    """The batches of a node, in a file.

    Attributes:
        parts: By digest: ``id`` of the batch, its ``mark`` at the server, the number of
            ``requests``, ``collected``, and the ``address`` of the server, which version 0.2 left
            out; ``cancelled`` if the user did so.
        failed: By key of the request: ``status``, ``body``, the number of ``tries``, and the
            ``address`` of the server. With status 200, the body has the ``reply``, and whether the
            request ``offers_tools``.
        refusals: Messages about fields that the server does not know.
        rounds: How often requests were submitted.
        published: The argument of the last `begin`.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FOLDER / "state.json"
        state = _state_in(self._path)
        self._others = {name: value for name, value in state.items() if name not in _STATE}
        self.parts: dict[str, dict[str, Any]] = state.get("parts", {})
        for digest in self.parts:  # the name of a file
            confined(digest, self._path)
        self.failed: dict[str, dict[str, Any]] = state.get("failed", {})
        self.refusals: list[str] = state.get("refusals", [])
        self.rounds: int = state.get("rounds", 0)
        self.published: str = state.get("published", "")

    @property
    def interrupted(self) -> bool:
        """Whether a run died before it had submitted all of them."""
        return any(part["id"] is None for part in self.parts.values())

    @property
    def waiting(self) -> list[str]:
        """The ids of batches that are submitted and not collected."""
        return [part["id"] for part in self.open_parts if part["id"]]

    @property
    def open_parts(self) -> list[dict[str, Any]]:
        """The parts whose replies are not collected."""
        return [part for part in self.parts.values() if not part["collected"]]

    @property
    def cancelled(self) -> bool:
        """Whether the user cancelled any batch that is not collected."""
        return any(part.get("cancelled") for part in self.open_parts)

    def begin(self, published: str) -> None:
        """Forget errors of earlier results: ``published`` changes when a result is published."""
        if published != self.published:
            self.failed, self.rounds, self.published = {}, 0, published

    def intend(self, counts: dict[str, int], address: str) -> None:
        """Write down that parts will be submitted; ``counts`` are their requests, by digest."""
        done = [digest for digest, part in self.parts.items() if part["collected"]]
        for digest in done:  # of the rounds before
            del self.parts[digest]
        for digest, count in counts.items():
            mark = f"{digest}-{os.urandom(8).hex()}"
            new = {"id": None, "mark": mark, "requests": count, "collected": False}
            self.parts[digest] = {**new, "address": address}
        self.rounds += 1
        self.save()

    def forget(self, digest: str) -> None:
        """Remove a part that the server refused; its requests are submitted again."""
        del self.parts[digest]
        self.save()

    def save(self) -> None:
        """Write the file durably."""
        state = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        write_durably(self._path, orjson.dumps(self._others | state))


def _state_in(path: Path) -> dict[str, Any]:
    """Return the content of the file of the batches; that of a newer version may be paid for."""
    try:
        with storage(path, "read the batches"):
            content = path.read_bytes()
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise
    try:
        state = orjson.loads(content)
    except orjson.JSONDecodeError:
        state = None
    if (
        isinstance(state, dict)
        and read_number(state.get("format", _FORMAT), _FORMAT, str(path)) is not None
        and all(map(_is_right, state.items()))
    ):
        return state
    reason = "it is damaged; delete the file to submit all requests again"
    raise StorageError(str(path), "read the batches", reason)


def _is_right(field: tuple[str, Any]) -> bool:
    """Return whether a field of the file of the batches has the type that it must have."""
    name, value = field
    if not isinstance(value, _STATE.get(name, object)):
        return False
    return name != "parts" or all(
        isinstance(part, dict) and {"id", "mark", "requests", "collected"} <= part.keys()
        for part in value.values()
    )


class Parts:
    """Requests for batches, in files of at most 50,000 and 190 MB."""

    def __init__(self, folder: Path, dialect: Dialect) -> None:
        self._folder, self._dialect = folder, dialect
        self._keys: set[str] = set()
        self._lines: list[bytes] = []
        self._bytes = 0
        self._counts: dict[str, int] = {}

    @property
    def count(self) -> int:
        """The number of requests."""
        return len(self._keys)

    def add(self, key: str, start: int, request: dict[str, Any]) -> None:
        """Add the request of the record at byte ``start``; requests with one key are sent once."""
        if key in self._keys:
            return
        self._keys.add(key)
        body = self._dialect.adapted(request)
        line = {"custom_id": f"{key}-{start}", "method": "POST", "url": ENDPOINT, "body": body}
        text = orjson.dumps(line) + b"\n"
        if len(self._lines) >= MOST_REQUESTS or self._bytes + len(text) > MOST_BYTES:
            self._write()
        self._lines.append(text)
        self._bytes += len(text)

    def finish(self) -> dict[str, int]:
        """Write the last file, and return the number of requests by the digest of each file."""
        self._write()
        return self._counts

    def _write(self) -> None:
        if self._lines:
            content = b"".join(self._lines)
            digest = hashlib.blake2b(content, digest_size=16).hexdigest()
            write_durably(self._folder / f"{digest}.jsonl", content)
            self._counts[digest] = len(self._lines)
            self._lines, self._bytes = [], 0


class _Asked(NamedTuple):
    """A request of a batch, with its estimated tokens."""

    model: str
    offers_tools: bool
    tokens: float


def _asked_in(path: Path, media: Mapping[str, float]) -> Iterator[tuple[str, _Asked]]:
    with storage(path, "read the requests of a batch"), path.open("rb") as file:
        for text in file:
            line = orjson.loads(text)
            body = line["body"]
            tokens = estimate(body, media=media)[0]
            yield line["custom_id"], _Asked(str(body["model"]), offers_tools(body), tokens)


def _check_reply(body: Any, *, offers: bool) -> None:
    """Raise a `ModelError` if the reply of a batch is no answer."""
    if not isinstance(body, dict):
        raise BadReplyError(f"the reply is no JSON object: {body!r:.200}")
    error = error_in(body, {})
    if error is not None:
        raise error
    reply_of(body, replayed=False, offers_tools=offers, empty=True)


def _error_of(known: Mapping[str, Any]) -> ModelError:
    """Return the error that was noted for a request."""
    body = known["body"]
    if known["status"] >= 400:
        return error_of(known["status"], {}, orjson.dumps(body))
    try:
        _check_reply(body["reply"], offers=body["offers_tools"])
    except ModelError as error:
        return error
    return BadReplyError("the reply of the batch was no answer")
