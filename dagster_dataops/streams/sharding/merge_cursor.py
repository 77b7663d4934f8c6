"""`MergeCursor`: read the items that worker processes made, in the order of one process."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dagster_dataops.errors import StreamWorkerError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.item_failures import FAILED
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State
from dagster_dataops.streams.core.transparent import TransparentStage
from dagster_dataops.streams.sharding.cuts import Cut
from dagster_dataops.streams.sharding.feeds import Feed, FeedCursor, SentElements, run_cursors
from dagster_dataops.streams.sharding.shard_pool import Limits, ShardPool
from dagster_dataops.streams.sharding.tasks import (
    ItemFailure,
    StreamJob,
    Task,
    TaskResult,
    dumps,
    loads,
)

if TYPE_CHECKING:
    from dagster_dataops.streams.core.item_failures import FailureCounter

_LOGGER: Final = logging.getLogger(__name__)
_END: Final = object()
_KEYS: Final = ("__key__", "key", "id")


@dataclass(eq=False)
class MergeStage(TransparentStage):
    """The stages of a cut, run by worker processes."""

    name: ClassVar[str] = "workers"
    cut: Cut
    limits: Limits

    @override
    def open(self, context: ReadContext) -> Cursor:
        return MergeCursor(self, context)


class MergeCursor(Cursor):
    """Yield the items of worker processes in order.

    The state is that of the same stages read by one process: workers send it with each item, except
    for the counts of failures, which are those of the items read here.
    """

    def __init__(self, stage: MergeStage, context: ReadContext) -> None:
        self._stage, self._context = stage, context
        cut, first = stage.cut, len(context.failures.counters)
        self._chain = cut.upon(Feed(cut.before, cut.before.path)).open(context)
        self._run, self._elements, feed = run_cursors(self._chain)
        assert isinstance(feed, FeedCursor)  # noqa: S101 - it was opened here
        self._feed = feed
        self._counters: list[FailureCounter] = context.failures.counters[first:]
        self._latest: bytes | None = None  # the encoded state after the last item, not converted
        self._at: int | None = None  # its place, if it is one of several that are encoded together
        self._decoded: tuple[bytes, Any] = (b"", None)  # those, decoded

    @override
    def state(self) -> State:
        self._convert()
        return self._chain.state()

    @override
    def splits_element(self) -> bool:
        self._convert()
        return self._chain.splits_element() or self._feed.before.splits_element()

    def _convert(self) -> None:
        """Restore the latest state of a worker in the stages that only convert states."""
        if self._latest is None:
            return
        counts = [counter.count for counter in self._counters]
        if self._decoded[0] is not self._latest:
            self._decoded = (self._latest, loads(self._latest))
        states = self._decoded[1]
        self._chain.restore(states if self._at is None else states[self._at])
        for counter, count in zip(self._counters, counts, strict=True):
            counter.count = count
        self._latest = None

    @override
    def restore(self, state: State) -> None:
        self._latest, self._feed.places = None, None
        self._chain.restore(state)
        self._feed.before.restore(self._feed.held)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._convert()
        self._feed.places = None
        self._chain.restart(reset_rng=reset_rng)

    @override
    def items(self) -> Iterator[Any]:
        cut = self._stage.cut
        self._convert()
        source = None
        if cut.is_dispatched():
            if cut.mark is None:
                _LOGGER.info("workers: this process reads %s and sends the items", cut.before.path)
            source = SentElements(self._feed)
            feed = Feed(None, cut.before.path, numbering=self._feed.numbering)
        else:
            feed = Feed(cut.before, cut.before.path, is_replica=True)
        failures = self._context.failures
        job = StreamJob(
            cut.upon(feed),
            self._context.seed,
            failures.on_error,
            failures.max_errors,
            failures.tolerance,
        )
        start = self._encoded()
        pool = ShardPool(job, self._stage.limits, start, source)
        try:
            for task in pool.tasks():
                result = task.result or self._killed(task)
                yield from self._result_items(result)
                if result.ended:
                    return
                pool.anchor = (result.end_state, task.first + task.count)
                if source is not None:
                    source.forget(task.first, task.count)
            if source is not None:
                source.finish()
                self._latest, self._at = self._encoded_at(source.number), None
        finally:
            pool.stop()

    def _encoded(self) -> bytes:
        """Return the present state as workers restore it."""
        if self._feed.places is None:
            return dumps(self._chain.state())
        held, self._feed.held = self._feed.held, self._feed.number
        try:
            return dumps(self._chain.state())
        finally:
            self._feed.held = held

    def _encoded_at(self, number: int) -> bytes:
        """Return the state at the end of all elements, if none follows the last result."""
        self._convert()
        self._feed.number = number
        if self._elements is not None:
            self._elements.number += self._feed.before.numbers_after
        return self._encoded()

    def _result_items(self, result: TaskResult) -> Iterator[Any]:
        failures = iter(result.failures)
        failure = next(failures, None)
        for at, item in enumerate(result.items):
            while failure is not None and failure.at <= at:
                self._handle(failure)
                failure = next(failures, None)
            self._latest, self._at = result.states, at
            yield item
        while failure is not None:
            self._handle(failure)
            failure = next(failures, None)
        for number in result.passed:
            self._counters[number].end(None)
        if result.error is not None:
            raise result.error
        self._latest, self._at = result.end_state, None

    def _handle(self, failure: ItemFailure) -> None:
        counter = self._counters[failure.counter]
        if failure.counter >= len(self._run):  # each worker counts all failures before the run
            if failure.failed <= counter.count:
                return  # a worker that replaced another one has read the item again
            counter.count = failure.failed - 1
        before = counter.before if failure.in_a_row is None else failure.in_a_row and FAILED
        counter.end(counter.handle(failure.item, failure.error, before))

    def _killed(self, task: Task) -> TaskResult:
        """Handle an element that killed workers; return its result, without items."""
        self._convert()
        feed = self._feed
        if task.payload is not None:
            item, after = task.payload[0], task.first + 1
        else:
            feed.before.restore(feed.held)
            item = next(feed.before.items(), _END)
            after = feed.before.state()
        reason = (
            f"element {task.first}{_key(item)} killed {task.deaths} worker processes in a row, the "
            f"last one with exit code {task.exit_code}; elements are counted from 0 where this "
            "reading started"
        )
        error = StreamWorkerError(self._run_name(), reason)
        if not self._run:
            raise error
        self._run[-1].counter.handle(item, error)
        for cursor in self._run:
            cursor.reset()
        if self._elements is not None:
            self._elements.number += self._elements.step
        if feed.places is None:
            feed.held = after
        else:
            feed.number, feed.held = after, feed.places[after]
        return TaskResult([], b"", [], self._encoded(), ended=item is _END)

    def _run_name(self) -> str:
        return " > ".join(step.counter.stage for step in reversed(self._run)) or "workers"


def _key(item: Any) -> str:
    """Return the key of a record in brackets, if it has one."""
    if isinstance(item, Mapping):
        for name in _KEYS:
            if name in item:
                return f" ({name} {item[name]!r})"
    return ""
