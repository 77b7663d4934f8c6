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
    BadReplyError,
    BadRequestError,
    BudgetSpentError,
    EndpointFailingError,
    FatalModelError,
    RateLimitedError,
    ReplyNotRecordedError,
    TransientModelError,
)
from dagster_dataops.models.batches.batch_delivery import BatchDelivery, DeferredRequest, Parts
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.calls.dialect import Dialect
from dagster_dataops.models.calls.shared_limits import SharedLimits
from dagster_dataops.models.calls.transports import transport_of
from dagster_dataops.models.replies.call_counts import CallCounts
from dagster_dataops.models.replies.kept_replies import replies_file
from dagster_dataops.models.replies.reply import reply_of, usage_of
from dagster_dataops.models.replies.reply_store import ReplyStore, request_key
from dagster_dataops.operators.outcomes.record_context import OperatorContext

_LOG: Final = logging.getLogger("dagster_dataops")
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 30.0
_BREAK_AFTER: Final = 50  # failures in a row
_BREAK_SECONDS: Final = (1.0, 4.0, 16.0, 64.0)  # the pauses after that; then the run stops
_CHARACTERS_A_TOKEN: Final = 3.5
_SEEDS: Final = 1 << 31  # what servers take
_USUAL_OUTPUT: Final = 256  # tokens of a reply without a limit, until it is there


class Endpoint(NamedTuple):
    """An endpoint of a server.

    Attributes:
        path: Its path below the address of the server.
        check: Takes a request and the JSON of its reply, and raises a `BadReplyError` for a reply
            without an answer, which is not stored.
    """

    path: str
    check: Callable[[dict[str, Any], dict[str, Any]], object]


CHAT: Final = Endpoint("/chat/completions", lambda _, reply: reply_of(reply, replayed=False))


class ModelSession:
    """The calls of one operator in one event loop.

    A request that was answered before is answered from the stored replies. Equal requests at the
    same time are sent once.

    Args:
        client: The client.
        name: Its name: clients of one name share their limits.
        context: The context of the operator.
        keep_replies: Whether replies are kept as long as the result.

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
        self._store = ReplyStore(file)
        self._published = _published(context)
        self._store.begin(self._published)
        self._transport = None if self._replays else transport_of(client)
        self._announced = (0.0, 0.0)  # limits of the server
        self._dialect = Dialect()
        self._turn = asyncio.Lock()  # one call at a time asks the limits
        self._freed = asyncio.Event()
        self._asked: dict[str, asyncio.Event] = {}
        self._counts = CallCounts(context, self._store, client.prices)
        self._fatal: FatalModelError | None = None
        self._failures_in_a_row = 0
        self._breaks = iter(_BREAK_SECONDS)
        self._paused_at = self._paused_until = 0.0
        self.batches: BatchDelivery | None = None
        self._noted: Parts | None = None

    @property
    def over_http(self) -> bool:
        """Whether calls are made over HTTP."""
        return self._client.complete is None and self._client.mode == "live"

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
        stored = self._store.get(key, rejected=not self._context.retries_failed)
        if stored is not None:
            self._counts.stored(stored, replays=self._replays)
            return stored.reply, True
        if self._replays:
            raise self._not_recorded(request)
        self._raise_batch_error(key)
        if sample and "seed" not in request and not self._context.retries_failed:
            request = {**request, "seed": self._seed_of(key)}
        if self._noted is not None:
            self._noted.add(key, self._context.position, request)
            raise DeferredRequest
        self._asked[key] = asyncio.Event()
        try:
            reply, seconds = await self._tried(endpoint, request)
            asked = _asked(request) if self._client.cassette else ""
            position, model = self._context.position, str(request["model"])
            self._store.put(key, position, model, reply, seconds=seconds, asked=asked)
        finally:
            self._asked.pop(key).set()
        self._counts.paid(reply, model, seconds)
        return reply, False

    def reject(self, request: dict[str, Any], sample: int = 0, reask: int = 0) -> None:
        """Record that the reply to a request was of no use.

        It is asked for again only when failed records are retried.
        """
        if not self._replays:
            self._store.reject(request_key(request, sample, reask))

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

    async def _tried(
        self, endpoint: Endpoint, request: dict[str, Any]
    ) -> tuple[dict[str, Any], float]:
        """Send a request until there is a reply or another try cannot help.

        Returns:
            The reply, and the seconds of the try that got it.
        """
        number, begun = 0, time.monotonic()
        while True:
            self._check_open()
            sent = self._dialect.adapted(request)
            try:
                reply = await self._sent(endpoint, sent)
            except TransientModelError as error:
                self._context.count(calls_repeated=1)
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
                self._succeeded()
                return reply

    def _check_open(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        limit = self._client.max_cost
        if limit and (cost := self._counts.cost()) >= limit:
            reason = (
                f"the calls for this result have cost {cost:.4f}, and max_cost of the client is "
                f"{limit:g}; raise it and run again to continue"
            )
            raise BudgetSpentError(reason)

    async def _sent(
        self, endpoint: Endpoint, request: dict[str, Any]
    ) -> tuple[dict[str, Any], float]:
        """Send a request as soon as the limits allow it."""
        assert self._transport is not None  # noqa: S101 - not in a replay
        reserved = sum(estimate(request))
        await self._admitted(reserved)
        unused, succeeded = 0.0, False
        unsent = ExitStack()
        unsent.enter_context(self._limits.sending(reserved))
        begun = time.monotonic()
        try:
            reply = await self._transport.send(endpoint.path, request, unsent.close)
            usage = usage_of(reply)
            if usage is not None:
                unused = reserved - usage.tokens_in - usage.tokens_out
            succeeded = True
            if self._transport.announced != self._announced:
                self._announced = self._transport.announced
                self._limits.lower(*(one / self._agents for one in self._announced))
            seconds = time.monotonic() - begun
        finally:
            unsent.close()
            self._limits.release(unused, succeeded=succeeded)
            self._freed.set()
        try:
            endpoint.check(request, reply)
        except BadReplyError:  # no answer, but paid
            if usage is not None:
                self._store.spend(self._context.position, str(request["model"]), reply)
            self._counts.without_answer(reply, str(request["model"]))
            raise
        return reply, seconds

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
        pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** (number - 1))
        pause *= random.uniform(0.5, 1)  # noqa: S311 - spreads calls, protects nothing
        if asked is None:
            return pause
        if limited:
            self._limits.block(asked)
        asked *= random.uniform(1, 1.1)  # noqa: S311
        return asked if number == 1 else max(asked, pause)  # the first wait was too short

    def _succeeded(self) -> None:
        self._failures_in_a_row = 0
        self._breaks = iter(_BREAK_SECONDS)

    def _break_if_failing(self, error: TransientModelError) -> None:
        """Pause all calls after many failures in a row; stop the run if that did not help."""
        now = time.monotonic()
        if isinstance(error, RateLimitedError) or now < self._paused_until:  # begun before
            return
        self._failures_in_a_row += 1
        if self._failures_in_a_row < _BREAK_AFTER:
            return
        self._failures_in_a_row = 0
        pause = next(self._breaks, None)
        if pause is None:
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


def _asked(request: dict[str, Any]) -> str:
    """Return the end of the last message, or of the input, of a request."""
    messages = request.get("messages")
    return str(messages[-1]["content"] if messages else request.get("input"))[-500:]


def estimate(request: dict[str, Any], usual_output: float = _USUAL_OUTPUT) -> tuple[float, float]:
    """Return about how many tokens a request has, and the most that its reply has.

    Args:
        request: The JSON of the request.
        usual_output: Tokens of a reply that has no limit.
    """
    if "messages" not in request:
        return len(str(request.get("input"))) / _CHARACTERS_A_TOKEN, 0.0
    characters = sum(len(str(message["content"])) for message in request["messages"])
    most = request.get("max_tokens") or request.get("max_completion_tokens") or usual_output
    return characters / _CHARACTERS_A_TOKEN, float(most)
