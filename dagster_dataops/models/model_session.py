"""`ModelSession`: the calls of one operator in one event loop."""

import asyncio
import logging
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final, NamedTuple

import xxhash

from dagster_dataops.datasets.published_files import MANIFEST
from dagster_dataops.errors import (
    BadRequestError,
    BudgetSpentError,
    EndpointFailingError,
    FatalModelError,
    InvalidOutputError,
    ModelError,
    PriceMissingError,
    RateLimitedError,
    ReplyNotRecordedError,
    TransientModelError,
    UnaddressedRepliesError,
    WrongServerError,
)
from dagster_dataops.foundation.concurrency.retrying import STOP, Backoff, FailureRow
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.attached_files import with_files
from dagster_dataops.models.batches.batch_delivery import BatchDelivery, DeferredRequest, Parts
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.calls.dialect import Dialect
from dagster_dataops.models.calls.shared_limits import SharedLimits
from dagster_dataops.models.calls.transports import transport_of
from dagster_dataops.models.calls.withheld_calls import WithholdingClient
from dagster_dataops.models.replies.call_counts import CallCounts
from dagster_dataops.models.replies.kept_replies import replies_file
from dagster_dataops.models.replies.reply import (
    finish_reason_of,
    offers_tools,
    reply_of,
    text_of,
)
from dagster_dataops.models.replies.reply_store import ReplyStore, StoredReply, request_key
from dagster_dataops.models.replies.served_by import ServedBy
from dagster_dataops.models.replies.token_estimates import estimate, reply_tokens
from dagster_dataops.models.replies.usage import counted_usage, usage_of
from dagster_dataops.operators.outcomes.record_context import OperatorContext

_LOG: Final = logging.getLogger("dagster_dataops")
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 30.0
_BREAK_AFTER: Final = 50  # failures in a row
_BREAK_SECONDS: Final = (1.0, 4.0, 16.0, 64.0)  # the pauses after that; then the run stops
_SEEDS: Final = 1 << 31  # what servers take
_STOP_AFTER: Final = 3  # replies that are no JSON, if none was before
_MAX_TEXT: Final = 2000


class Endpoint(NamedTuple):
    """An endpoint of a server.

    Attributes:
        path: Its path below the address of the server.
        check: Takes a request and the JSON of its reply, and raises a `ModelError` for a reply
            without an answer, which is not stored. Stored replies are checked as well.
    """

    path: str
    check: Callable[[dict[str, Any], dict[str, Any]], object]


def check_chat(request: dict[str, Any], reply: dict[str, Any]) -> None:
    """Raise a `ModelError` for a reply without an answer; an empty text is for the operator."""
    reply_of(reply, replayed=False, offers_tools=offers_tools(request), empty=True)


CHAT: Final = Endpoint("/chat/completions", check_chat)


class ModelSession:
    """The calls of one operator in one event loop.

    A request that was answered before is answered from the stored replies. Equal requests at the
    same time are sent once.

    Clients of one name share their limits. With ``keep_replies``, replies are kept as long as
    the result.

    Attributes:
        batches: Where replies come from that are delivered in batches.
    """

    def __init__(
        self,
        client: ModelClient,
        name: str,
        context: OperatorContext,
        *,
        keep_replies: bool = True,
    ) -> None:
        self._client = client
        self._context = context
        self._replays = client.mode == "replay"
        folder = context.root / ".models"
        number, self._agents = context.agent
        file = folder / f"{name}.{socket.gethostname()}.{number}.limits"
        self._limits = SharedLimits(file, client.rates.share(self._agents))
        file = client.cassette or replies_file(context.folder, keep=keep_replies)
        self._store = ReplyStore(file, _served_by(client))
        self._published = _published(context)
        self._store.begin(self._published)
        self._withholding = client if isinstance(client, WithholdingClient) else None
        makes_calls = not self._replays and self._withholding is None
        self._transport = transport_of(client) if makes_calls else None
        self._announced = (0.0, 0.0)  # limits of the server
        self._dialect = Dialect()
        self._turn = asyncio.Lock()  # one call at a time asks the limits
        self._freed = asyncio.Event()
        self._asked: dict[str, asyncio.Event] = {}
        self._counts = CallCounts(context, self._store, client.prices)
        self._fatal: FatalModelError | None = None
        self._length = 0  # of the vectors of this result; 0 before the first
        self._not_json: int | None = 0  # replies so far; None once there was JSON
        self._backoff = Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        self._failures = FailureRow(_BREAK_AFTER, _BREAK_SECONDS)
        self._paused_at = self._paused_until = 0.0
        self.batches: BatchDelivery | None = None
        self._noted: Parts | None = None

    @property
    def over_http(self) -> bool:
        """Whether calls are made over HTTP."""
        is_live = self._client.mode == "live" and self._withholding is None
        return self._client.complete is None and is_live

    def deliver_in_batches(self) -> BatchDelivery:
        """Take replies from batches, and return those of this node."""
        folder = self._context.folder
        self.batches = BatchDelivery(folder, self._client, self._store, self._published)
        return self.batches

    @contextmanager
    def noting(self, requests: Parts) -> Iterator[Parts]:
        """Note requests in the block, instead of sending them; nothing counts there."""
        self._noted = requests
        try:
            yield requests
        finally:
            self._noted = None
            self._counts.forget()

    async def complete(
        self,
        request: dict[str, Any],
        sample: int = 0,
        reask: int = 0,
        endpoint: Endpoint = CHAT,
    ) -> tuple[dict[str, Any], bool]:
        """Return the JSON of the reply to a request, and whether it was stored.

        Args:
            request: The JSON of the request.
            sample: Equal requests with other numbers are sent separately; from 1 on with a seed.
            reask: How many replies of the wrong form came before; the same holds for it.
            endpoint: The endpoint.

        Raises:
            ModelError: There is no reply.
        """
        if self._noted is None:
            self._counts.spent_before()
        key = request_key(request, sample, reask)
        while (other := self._asked.get(key)) is not None:
            with self._context.waiting():
                await other.wait()
        stored = self._stored(endpoint, request, key)
        if stored is not None:
            self._counts.stored(stored, replays=self._replays)
            return stored.reply, True
        if self._withholding is not None:
            self._withholding.withhold(key, request, self._context.position)
        if self._replays:
            raise self._not_recorded(request)
        self._raise_batch_error(key)
        if sample and "seed" not in request and not self._context.retries_failed:
            request = {**request, "seed": self._seed_of(key)}
        if self._noted is not None:
            self._check_open(str(request["model"]))
            self._noted.add(key, self._context.position, await with_files(request))
            raise DeferredRequest
        self._asked[key] = asyncio.Event()
        try:
            paid = await self._tried(endpoint, await with_files(request))
            self._store.put(
                key,
                paid.start,
                paid.model,
                paid.reply,
                seconds=paid.seconds,
                asked=_asked(request) if self._client.cassette else "",
                estimated=paid.estimated,
            )
        finally:
            self._asked.pop(key).set()
        self._counts.paid(paid)
        return paid.reply, False

    def _stored(self, endpoint: Endpoint, request: dict[str, Any], key: str) -> StoredReply | None:
        """Return the stored reply to a request; ``None`` if there is none that is an answer."""
        try:
            stored = self._store.get(key, rejected=not self._context.retries_failed)
        except UnaddressedRepliesError as error:
            self._fatal = error
            raise
        if stored is not None:
            try:
                endpoint.check(request, stored.reply)
            except ModelError:  # version 0.2 stored it
                if self._replays:
                    raise
                return None
        return stored

    def _paid(
        self, request: dict[str, Any], reply: dict[str, Any], seconds: float = 0.0
    ) -> StoredReply:
        """Return a reply with what is known about its call."""
        estimated = counted_usage(reply).estimated
        if estimated is not None:
            tokens, _ = estimate(request, media=self._client.media_tokens)
            estimated = counted_usage(reply, tokens).estimated
        model, position = str(request["model"]), self._context.position
        return StoredReply(0, position, model, seconds, reply, estimated=estimated)

    def reject(self, request: dict[str, Any], sample: int = 0, reask: int = 0) -> None:
        """Record that the reply to a request was of no use.

        It is asked for again only when failed records are retried.
        """
        if not self._replays:
            self._store.reject(request_key(request, sample, reask))

    def check_length(
        self, request: dict[str, Any], length: int, length_in: Callable[[dict[str, Any]], int]
    ) -> None:
        """Check that the vectors of a reply are as long as others of the result.

        ``length_in`` returns the length of the vectors in a reply; 0 if it has none.

        Raises:
            InvalidOutputError: They are not.
        """
        if not self._length:
            model = str(request["model"])
            stored = self._store.since(self._store.published)
            address = self._client.server.address
            mine = (reply for reply in stored if (reply.model, reply.address) == (model, address))
            earlier = (length_in(reply.reply) for reply in mine)
            self._length = next((known for known in earlier if known), length)
        if length != self._length:
            reason = f"the vectors have {length} numbers, others of this result {self._length}"
            raise InvalidOutputError(reason)

    async def close(self) -> None:
        """Close connections and files."""
        if self._transport is not None:
            await self._transport.close()
        self._limits.close()
        self._store.close()

    def _seed_of(self, key: str) -> int:
        """Return the seed of a sample: the same in each run, others for others."""
        return xxhash.xxh3_64_intdigest(key.encode(), seed=self._context.seed) % _SEEDS

    def _raise_batch_error(self, key: str) -> None:
        """Raise the error with which the server answered a request in a batch."""
        error = None if self.batches is None else self.batches.error_of(key)
        if error is not None:
            raise error

    def _not_recorded(self, request: dict[str, Any]) -> ReplyNotRecordedError:
        shown = str(request.get("messages") or request.get("input"))[:500]
        nearest = self._store.nearest(_asked(request))
        like = f"; the nearest recorded message is {nearest!r}" if nearest else ""
        reason = (
            f"{self._client.cassette} has no reply to this request of model {request['model']}: "
            f"{shown}{like}; record it with ModelClient(mode='record')"
        )
        return ReplyNotRecordedError(reason)

    async def _tried(self, endpoint: Endpoint, request: dict[str, Any]) -> StoredReply:
        """Send a request until there is a reply or another try cannot help."""
        number, begun = 0, time.monotonic()
        while True:
            self._check_open(str(request["model"]))
            sent = self._dialect.adapted(request)
            try:
                reply = await self._sent(endpoint, sent)
            except TransientModelError as error:
                self._context.count(calls_repeated=1)
                self._stop_if_never_json(error)
                self._break_if_failing(error)
                number += 1
                if not error.connected and begun < self._paused_at:  # the server was down
                    number, begun = 1, time.monotonic()
                pause = self._pause(error, number)
                with self._limited():
                    await asyncio.sleep(pause)
            except BadRequestError as error:
                self._dialect.learn(error)
                if self._dialect.adapted(request) == sent:
                    raise
                _LOG.warning("%s: requests get another form, since: %s", self._context.node, error)
            except FatalModelError as error:
                self._fatal = error
                raise
            else:
                self._failures.succeeded()
                return reply

    def _check_open(self, model: str) -> None:
        if self._fatal is not None:
            raise self._fatal
        limit = self._client.max_cost
        if limit and model not in self._client.prices:
            reason = (
                f"max_cost of the client is {limit:g}, but it has no price of model {model!r}; "
                f"its prices are of: {', '.join(self._client.prices) or 'none'}"
            )
            raise PriceMissingError(reason)
        if limit and (cost := self._counts.cost()) >= limit:
            reason = (
                f"the calls for this result have cost {cost:.4f}, and max_cost of the client is "
                f"{limit:g}; raise it and run again to continue"
            )
            raise BudgetSpentError(reason)

    async def _sent(self, endpoint: Endpoint, request: dict[str, Any]) -> StoredReply:
        """Send a request as soon as the limits allow it."""
        assert self._transport is not None  # noqa: S101 - not in a replay
        reserved = sum(estimate(request, media=self._client.media_tokens))
        await self._admitted(reserved)
        unused, succeeded = 0.0, False
        unsent = ExitStack()
        unsent.enter_context(self._limits.sending(reserved))
        begun = time.monotonic()
        try:
            reply = await self._transport.send(endpoint.path, request, unsent.close)
            paid = self._paid(request, reply, time.monotonic() - begun)
            unused = reserved - _tokens(paid)
            succeeded = True
        except ModelError as error:
            self._take_error(request, error)
            raise
        finally:
            unsent.close()
            self._limits.release(unused, succeeded=succeeded)
            self._freed.set()
        self._not_json = None
        self._heed_announced()
        self._check(endpoint, request, reply)
        return paid

    def _check(self, endpoint: Endpoint, request: dict[str, Any], reply: dict[str, Any]) -> None:
        """Raise a `ModelError` for a reply without an answer, which is paid nevertheless."""
        try:
            endpoint.check(request, reply)
        except ModelError as error:
            _describe(error, reply)
            self._spend(request, reply)
            raise

    def _take_error(self, request: dict[str, Any], error: ModelError) -> None:
        """Take notice of an error that the server answered with status 200."""
        if error.body is not None:
            self._not_json = None
            _describe(error, error.body)
            self._spend(request, error.body)

    def _heed_announced(self) -> None:
        """Keep to the limits that the server announces."""
        assert self._transport is not None  # noqa: S101 - by the caller
        if self._transport.announced != self._announced:
            self._announced = self._transport.announced
            self._limits.lower(*(limit / self._agents for limit in self._announced))

    def _spend(self, request: dict[str, Any], reply: dict[str, Any]) -> None:
        """Store and count the cost of a reply without an answer, if it has a usage or a text."""
        if usage_of(reply) is None and not reply_tokens(reply):
            return
        spent = self._paid(request, reply)
        self._store.spend(spent.start, spent.model, reply, estimated=spent.estimated)
        self._counts.without_answer(spent)

    async def _admitted(self, tokens: float) -> None:
        if not self._turn.locked() and not self._limits.acquire(tokens):
            return
        with self._limited():
            async with self._turn:
                while wait := self._limits.acquire(tokens):
                    self._freed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(wait):
                            await self._freed.wait()

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Count the seconds of the block, which do not count towards the time limit."""
        begun = time.monotonic()
        with self._context.waiting():
            try:
                yield
            finally:
                self._context.count(rate_limited_seconds=time.monotonic() - begun)

    def _pause(self, error: TransientModelError, number: int) -> float:
        """Return the seconds before the next try; raise the error if there is none."""
        asked = error.retry_after
        limited = isinstance(error, RateLimitedError)
        if error.overloaded and asked is None:
            self._limits.cut()
        if number >= self._client.tries or (asked or 0) > self._client.longest_wait:
            error.details["attempts"] = number
            raise error
        pause = self._backoff.pause(number)
        if asked is None:
            return pause
        if limited:
            self._limits.block(asked)
        asked *= random.uniform(1, 1.1)  # noqa: S311 - spreads calls, protects nothing
        return asked if number == 1 else max(asked, pause)  # the first wait was too short

    def _stop_if_never_json(self, error: TransientModelError) -> None:
        """Stop the run if the server has sent pages or events from the start, and no JSON."""
        if not error.never_json or self._not_json is None:
            return
        self._not_json += 1
        if self._not_json >= _STOP_AFTER:
            reason = (
                f"the first {counted(self._not_json, 'replies')} were no JSON; set base_url of the "
                f"ModelClient to a server with OpenAI's API, usually with /v1 at its end. {error}"
            )
            self._fatal = WrongServerError(reason)
            raise self._fatal

    def _break_if_failing(self, error: TransientModelError) -> None:
        """Pause all calls after many failures in a row; stop the run if that did not help."""
        now = time.monotonic()
        if isinstance(error, RateLimitedError) or now < self._paused_until:  # begun before
            return
        pause = self._failures.failed()
        if not pause:
            return
        if pause == STOP:
            self._fatal = _failing(error)
            raise self._fatal
        self._limits.block(pause)
        self._paused_at, self._paused_until = now, now + pause


def _failing(error: TransientModelError) -> EndpointFailingError:
    pauses = ", ".join(f"{seconds:g}" for seconds in _BREAK_SECONDS)
    reason = (
        f"{_BREAK_AFTER} calls in a row have failed, also after pauses of {pauses} s; the last "
        f"one: {error}"
    )
    return EndpointFailingError(reason)


def _published(context: OperatorContext) -> str:
    """Return a text that changes when a result of the node is published; empty if there is none."""
    with suppress(FileNotFoundError):
        manifest = (context.folder / f"{context.node}{MANIFEST}").read_bytes()
        return xxhash.xxh3_64_hexdigest(manifest)
    return ""


def _served_by(client: ModelClient) -> ServedBy | None:
    """Return the server whose stored replies count; ``None``: all in a file that the user chose."""
    if client.cassette is None:
        return client.server
    return None if client.mode == "replay" else client.server._replace(unaddressed="use")


def _describe(error: ModelError, reply: dict[str, Any]) -> None:
    """Add the facts of a reply without an answer to its error."""
    usage = usage_of(reply)
    details = {
        "request_id": reply.get("id"),
        "reply": text_of(reply)[:_MAX_TEXT],
        "finish_reason": finish_reason_of(reply),
        "usage": None if usage is None else usage._asdict(),
    }
    error.details |= {name: value for name, value in details.items() if value}


def _tokens(paid: StoredReply) -> int:
    usage = counted_usage(paid.reply, estimated=paid.estimated).usage
    return usage.tokens_in + usage.tokens_out


def _asked(request: dict[str, Any]) -> str:
    """Return the end of the last message, or of the input, of a request."""
    messages = request.get("messages")
    return str(messages[-1].get("content") if messages else request.get("input"))[-500:]
