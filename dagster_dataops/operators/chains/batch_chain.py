"""Call the parts of a chain on batches, where one of them takes batches.

All records of a batch are through a part before one of them enters the next. A part that takes
single records gets one after the other. A part that takes batches gets all of them at once. If it
fails, they are divided until the record that fails is alone.
"""

from collections.abc import Callable, Generator, Sequence
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from dagster_dataops.datasets.file_values.file_keeper import FileKeeper
from dagster_dataops.foundation.concurrency.stepping import (
    EndsCall,
    StepError,
    Steps,
    run_steps,
    run_steps_async,
)
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.chains.chain_calls import (
    AnyPassage,
    Mark,
    PartCall,
    PartTimes,
    Passage,
    own_copy,
)
from dagster_dataops.operators.outcomes.return_contract import ContractError, checked_batch
from dagster_dataops.records import Record

_Calls: TypeAlias = Generator[tuple[Callable[[Any], Any], Any], Any, None]


class _Entry(NamedTuple):
    """A record that enters a part, and the passage of the record of the batch it was made of."""

    passage: Passage
    record: Record


class BatchPassage(AnyPassage):
    """The way of a batch through the parts."""

    def __init__(
        self,
        calls: Sequence[PartCall],
        times: PartTimes,
        records: Sequence[Record],
        keeper: FileKeeper | None,
    ) -> None:
        self._calls = calls
        self._times = times
        names = [call.name for call in calls]
        self._passages = [Passage(names, -1, keeper) for _ in records]
        for passage, record in zip(self._passages, records, strict=True):
            passage.records.append(record)
        self._failed: dict[Passage, BaseException] = {}

    def steps(self) -> Steps[list[Any]]:
        """Yield functions with their arguments.

        Returns:
            What each record of the batch became: what a chain of single records returns for it, or
            the exception of the part that failed.
        """
        for part, call in enumerate(self._calls):
            started = perf_counter()
            entries = [
                _Entry(passage, record)
                for passage in self._open()
                for record in passage.enter(part)
            ]
            yield from self._all_at_once(call, entries) if call.batch else self._each(call, entries)
            self._times.add(part, perf_counter() - started)
        return [
            self._failed[passage] if passage in self._failed else passage.outcome()
            for passage in self._passages
        ]

    @override
    def blame(self, error: BaseException) -> Mark:
        return next(iter(self._open()), self._passages[0]).blame(error)

    def _open(self) -> list[Passage]:
        """Return the passages with records for the next part."""
        return [
            passage for passage in self._passages if passage.records and passage not in self._failed
        ]

    def _each(self, call: PartCall, entries: Sequence[_Entry]) -> _Calls:
        for entry in entries:
            if entry.passage in self._failed:
                continue
            try:
                returned = yield call.forward, entry.record
            except StepError as failed:
                self._fail(entry, failed.error)
            else:
                self._take(entry, returned)

    def _all_at_once(self, call: PartCall, entries: Sequence[_Entry]) -> _Calls:
        if not entries:
            return
        # Copies: a call that raises may have changed some, and they are passed again.
        copies = [own_copy(record) for _, record in entries]
        try:
            returned = yield call.forward, copies
            outcomes = checked_batch(returned, len(entries))
        except (StepError, ContractError) as failed:
            if len(entries) == 1:
                error = failed.error if isinstance(failed, StepError) else failed
                self._fail(entries[0], error)
                return
        else:
            for (passage, _), record, outcome in zip(entries, copies, outcomes, strict=True):
                self._take(_Entry(passage, record), outcome)
            return
        middle = len(entries) // 2
        yield from self._all_at_once(call, entries[:middle])
        yield from self._all_at_once(call, entries[middle:])

    def _take(self, entry: _Entry, returned: object) -> None:
        """Process the return value of a part for a record."""
        if entry.passage in self._failed:
            return
        if isinstance(returned, BaseException):
            self._fail(entry, returned)
            return
        try:
            entry.passage.take(returned, entry.record)
        except ContractError as error:
            self._fail(entry, error)

    def _fail(self, entry: _Entry, error: BaseException) -> None:
        entry.passage.blame(error)
        self._failed.setdefault(entry.passage, error)


def _ends_call(error: BaseException) -> bool:
    return isinstance(error, EndsCall) or not isinstance(error, Exception)


def _called(step: tuple[Callable[[Any], Any], Any]) -> Any:
    function, argument = step
    return function(argument)


def batch_chain_function(
    calls: Sequence[PartCall], times: PartTimes, keeper: FileKeeper | None = None
) -> Callable[..., list[Any]]:
    """Return the function that calls the parts in order on a batch.

    It returns for each record a dict for the usual one, `Disposed`, or the exception of a part. An
    exception that ends the whole call leaves it with the name of a part.

    Args:
        calls: The parts, none of them asynchronous.
        times: Takes their seconds; used by one thread.
        keeper: Stores the files that they make.
    """

    def run(records: list[Record]) -> list[Any]:
        passage = BatchPassage(calls, times, records, keeper)
        try:
            return run_steps(passage.steps(), _called, _ends_call)
        except BaseException as error:
            passage.blame(error)
            raise

    return run


def async_batch_chain_function(
    calls: Sequence[PartCall], times: PartTimes, keeper: FileKeeper | None = None
) -> Callable[..., Any]:
    """Return the coroutine function that calls the parts in order on a batch.

    As `batch_chain_function`. It takes a list as well, to which it adds the part that the batch is
    in when an exception ends the call.
    """

    async def run(records: list[Record], failed: list[Mark] | None = None) -> list[Any]:
        passage = BatchPassage(calls, times, records, keeper)
        try:
            return await run_steps_async(passage.steps(), _called, _ends_call)
        except BaseException as error:
            mark = passage.blame(error)
            if failed is not None:
                failed.append(mark)
            raise

    return run
