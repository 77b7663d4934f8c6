"""Take input lines through steps: decode, call the operator, encode, divide a batch, try again.

`CallSteps` makes no call: it yields steps, so that one code serves plain calls and coroutines, and
operators that take one record as well as those that take batches.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.datasets.lines import Line
from dagster_dataops.errors import FileNotStoredError, UnencodableError
from dagster_dataops.execution.records.record_failures import (
    Failure,
    Outcome,
    failure_of_line,
    in_full,
    in_part,
    raised,
)
from dagster_dataops.execution.records.retries import PauseEnded, Retries
from dagster_dataops.execution.records.span_draft import Finished
from dagster_dataops.execution.timeouts.record_timeout import TooManyStuckError
from dagster_dataops.foundation.concurrency.stepping import StepError, Steps
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.dispositions import (
    MERGED,
    USUAL,
    Disposition,
    dropped_for,
    emitting,
)
from dagster_dataops.operators.outcomes.packed_window import PackedWindow
from dagster_dataops.operators.outcomes.record_context import StopRun, Tally
from dagster_dataops.operators.outcomes.return_contract import (
    ContractError,
    checked_batch,
    encode_outcome,
)
from dagster_dataops.records import Record, compact_copy, decode


class Pause(NamedTuple):
    """A step: wait before failed records are tried again. Any other step calls the operator."""

    seconds: float


# Exceptions of a call or a pause that end the run; no record is blamed for them.
ENDS_OF_RUN: Final = (StopRun, TooManyStuckError, PauseEnded, FileNotStoredError)
_UNUSED: Final = "not packed"

CallOnce: TypeAlias = Callable[[list[Line]], list[Finished]]
DisposedOutcome: TypeAlias = tuple[Outcome, Disposition]
_ByStart: TypeAlias = dict[int, DisposedOutcome]  # by where the line starts


class CallSteps:
    """Takes lines through the steps of a call.

    Args:
        operator: The operator.
        retries: Further tries of failed records; those of a batch are tried again together.
        tally: Counts of the calls.
    """

    def __init__(self, operator: Operator, retries: Retries, tally: Tally) -> None:
        self._operator = operator
        self._retries = retries
        self._tally = tally
        self._batch = operator.__dataops__.spec.batch
        self._keeper = operator.__dataops__.keeper
        self._decode = operator.__dataops_decode__
        self._called = self._divided if self._batch else self._alone
        self._noted: dict[int, str] = {}  # names of counts of records of a batch, by their start

    def of(self, lines: Sequence[Line]) -> Steps[list[Finished]]:
        """Yield the steps for a batch, or for a single line of an operator that takes one record.

        Yields:
            What to call the operator with, and pauses.

        Returns:
            What became of every line. The counts of the calls are those of the first line.
        """
        tally = self._tally
        tally.start = lines[0].start
        outcomes = yield from self._called(lines)
        failed = [at for at, (outcome, _) in outcomes.items() if isinstance(outcome, Failure)]
        if failed:
            yield from self._try_again(lines, failed, outcomes)
        counts = tally.take_counts() if tally.has_counts else {}
        finished: list[Finished] = []
        for line in lines:
            if note := self._noted.pop(line.start, ""):
                counts = {**counts, note: 1}
            finished.append(Finished(line, *outcomes[line.start], counts))
            counts = {}
        return finished

    def again(self, line: bytes, failure: Failure) -> Steps[DisposedOutcome]:
        """Try a line that failed again, as often as the settings say; return its last outcome."""
        outcomes: _ByStart = {0: (failure, USUAL)}
        yield from self._try_again([Line(0, len(line), line)], [0], outcomes)
        return outcomes[0]

    def _try_again(
        self, lines: Sequence[Line], failed: Iterable[int], outcomes: _ByStart
    ) -> Steps[None]:
        """Replace failures by the outcomes of further tries, and complete those that remain."""
        retries = self._retries
        tries = dict.fromkeys(failed, 1)
        again: Iterable[int] = tries
        for number in range(1, 1 + retries.most):
            again = {at for at in again if retries.may_help(outcomes[at][0])}
            if not again:
                break
            yield Pause(max(retries.pause_before(number, outcomes[at][0]) for at in again))
            if retries.ended:
                break
            outcomes.update((yield from self._called([x for x in lines if x.start in again])))
            tries.update(dict.fromkeys(again, number + 1))
        for at, count in tries.items():
            outcome, _ = outcomes[at]
            if isinstance(outcome, Failure):
                outcome = in_part(
                    in_full(outcome, self._operator)._replace(attempts=count), self._operator
                )
                outcomes[at] = outcome, outcome.disposition or USUAL
        more = [at for at, count in tries.items() if count > 1]
        retries.count(len(more), sum(not isinstance(outcomes[at][0], Failure) for at in more))

    def _alone(self, lines: Sequence[Line]) -> Steps[_ByStart]:
        """Call for a single line with its record."""
        (line,) = lines
        try:
            record = decode(line.text)
        except ValueError:
            return {line.start: (failure_of_line(line.text), USUAL)}
        try:
            returned = yield record
        except StepError as failed:
            return {line.start: _failed(failed.error)}
        return {line.start: self._encoded(returned, record)}

    def _divided(self, lines: Sequence[Line]) -> Steps[_ByStart]:
        """Call once for all lines; if that fails, once for each half."""
        outcomes: _ByStart = {}
        valid: list[Line] = []
        records: list[Record] = []
        for line in lines:
            try:
                records.append(self._decode(line.text))
            except ValueError:
                outcomes[line.start] = failure_of_line(line.text), USUAL
            else:
                valid.append(line)
        if not valid:
            return outcomes
        try:
            returned = yield records
            return outcomes | self._outcomes(valid, records, returned)
        except (StepError, ContractError, UnencodableError) as failed:
            if len(valid) == 1:
                error = failed.error if isinstance(failed, StepError) else failed
                return outcomes | {valid[0].start: _failed(error)}
        middle = len(valid) // 2
        first = yield from self._divided(valid[:middle])
        second = yield from self._divided(valid[middle:])
        return outcomes | first | second

    def _outcomes(
        self, lines: Sequence[Line], records: Sequence[Record], returned: Any
    ) -> _ByStart:
        """Return the outcome of each record from the return value of a call.

        Raises:
            ContractError: It is no list, or a list of the wrong length.
        """
        if self._batch == "forward_window":
            return self._of_window(lines, returned)
        outcomes = checked_batch(returned, len(records))
        if self._tally.measure_each is not None:
            notes = self._tally.measure_each()
            self._noted |= {line.start: note for line, note in zip(lines, notes, strict=False)}
        return {
            line.start: _failed(one)
            if isinstance(one, BaseException)
            else self._encoded(one, record)
            for line, one, record in zip(lines, outcomes, records, strict=True)
        }

    def _encoded(self, returned: object, record: Record) -> DisposedOutcome:
        try:
            line, disposition = encode_outcome(returned, record, self._keeper)
            return compact_copy(line), disposition  # it waits for the others of its batch or span
        except FileNotStoredError:
            raise
        except Exception as error:  # noqa: BLE001 - a failure of this record alone
            return _failed(error)

    def _of_window(self, lines: Sequence[Line], returned: object) -> _ByStart:
        """Return the outcome of a whole batch: the first line has the records of all."""
        if not isinstance(returned, list):
            kind = type(returned).__name__
            msg = f"returned a {kind} for a batch; return a list of dicts"
            raise ContractError(msg)
        encoded, _ = encode_outcome(returned, {}, self._keeper)
        if isinstance(returned, PackedWindow):
            return _of_packed(lines, returned, encoded)
        first, *others = lines
        outcomes: _ByStart = {first.start: (encoded, emitting(len(returned)))}
        return outcomes | {line.start: (b"", MERGED) for line in others}


def _failed(error: BaseException) -> DisposedOutcome:
    return raised(error), USUAL


def _of_packed(lines: Sequence[Line], window: PackedWindow, encoded: bytes) -> _ByStart:
    """Return the outcome of a window of packs: its first packed record has the packs of all."""
    outcomes: _ByStart = {}
    written = not window
    for place, line in enumerate(lines):
        if place in window.failed:
            outcomes[line.start] = _failed(window.failed[place])
        elif place in window.unused:
            outcomes[line.start] = b"", dropped_for(_UNUSED)
        elif written:
            outcomes[line.start] = b"", MERGED
        else:
            outcomes[line.start] = encoded, emitting(len(window))
            written = True
    return outcomes
