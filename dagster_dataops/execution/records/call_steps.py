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
        self._by_window = operator.__dataops__.spec.by_window
        self._keeper = operator.__dataops__.keeper
        self._decode = operator.__dataops_decode__
        self._called = self._divided if operator.__dataops__.spec.batch else self._alone

    def of(self, lines: Sequence[Line]) -> Steps[list[Finished]]:
        """Yield the steps for a batch, or for a single line of an operator that takes one record.

        Yields:
            What to call the operator with, and pauses.

        Returns:
            What became of every line. The counts of the calls are those of the first line.
        """
        tally = self._tally
        tally.start = lines[0].start
        finished = yield from self._called(lines)
        for result in finished:
            if isinstance(result.outcome, Failure):
                finished = yield from self._tried_again(finished)
                break
        if tally.has_counts:
            counts = {**tally.take_counts(), **finished[0].counts}
            finished[0] = finished[0]._replace(counts=counts)
        return finished

    def again(self, line: bytes, failure: Failure) -> Steps[Finished]:
        """Try a line that failed again, as often as the settings say; return its last outcome."""
        failed = Finished(Line(0, len(line), line), failure)
        (result,) = yield from self._tried_again([failed])
        return result

    def _tried_again(self, finished: list[Finished]) -> Steps[list[Finished]]:
        """Return lines with the outcomes of further tries; failures that remain are completed."""
        retries = self._retries
        by_start = {result.line.start: result for result in finished}
        tries = {at: 1 for at, result in by_start.items() if isinstance(result.outcome, Failure)}
        again: Iterable[int] = tries
        for number in range(1, 1 + retries.most):
            again = {at for at in again if retries.may_help(by_start[at].outcome)}
            if not again:
                break
            yield Pause(max(retries.pause_before(number, by_start[at].outcome) for at in again))
            if retries.ended:
                break
            lines = [result.line for result in finished if result.line.start in again]
            for result in (yield from self._called(lines)):
                by_start[result.line.start] = result
            tries.update(dict.fromkeys(again, number + 1))
        for at, count in tries.items():
            by_start[at] = self._completed(by_start[at], count)
        more = [at for at, count in tries.items() if count > 1]
        retries.count(len(more), sum(not isinstance(by_start[at].outcome, Failure) for at in more))
        return list(by_start.values())

    def _completed(self, result: Finished, attempts: int) -> Finished:
        """Return a line whose failure, if it failed, has its texts and the number of tries."""
        if not isinstance(result.outcome, Failure):
            return result
        failure = in_full(result.outcome, self._operator)._replace(attempts=attempts)
        failure = in_part(failure, self._operator)
        return result._replace(outcome=failure, disposition=failure.disposition or USUAL)

    def _alone(self, lines: Sequence[Line]) -> Steps[list[Finished]]:
        """Call for a single line with its record."""
        (line,) = lines
        try:
            record = decode(line.text)
        except ValueError:
            return [Finished(line, failure_of_line(line.text))]
        try:
            returned = yield record
        except StepError as failed:
            return [Finished(line, raised(failed.error))]
        return [self._encoded(line, returned, record)]

    def _divided(self, lines: Sequence[Line]) -> Steps[list[Finished]]:
        """Call once for all lines; if that fails, once for each half."""
        invalid: list[Finished] = []
        valid: list[Line] = []
        records: list[Record] = []
        for line in lines:
            try:
                records.append(self._decode(line.text))
            except ValueError:
                invalid.append(Finished(line, failure_of_line(line.text)))
            else:
                valid.append(line)
        if not valid:
            return invalid
        finished = yield from self._of_valid(valid, records)
        if not invalid:
            return finished
        return sorted(invalid + finished, key=lambda result: result.line.start)

    def _of_valid(self, lines: list[Line], records: list[Record]) -> Steps[list[Finished]]:
        """Call once for all records; if that fails, once for each half of their lines."""
        try:
            returned = yield records
            return self._outcomes(lines, records, returned)
        except (StepError, ContractError, UnencodableError) as failed:
            if len(lines) == 1:
                error = failed.error if isinstance(failed, StepError) else failed
                return [Finished(lines[0], raised(error))]
        middle = len(lines) // 2
        first = yield from self._divided(lines[:middle])
        second = yield from self._divided(lines[middle:])
        return first + second

    def _outcomes(
        self, lines: Sequence[Line], records: Sequence[Record], returned: Any
    ) -> list[Finished]:
        """Return the outcome of each record from the return value of a call."""
        if self._by_window:
            return self._of_window(lines, returned)
        outcomes = checked_batch(returned, len(records))
        finished = [
            Finished(line, raised(outcome))
            if isinstance(outcome, BaseException)
            else self._encoded(line, outcome, record)
            for line, outcome, record in zip(lines, outcomes, records, strict=True)
        ]
        if self._tally.measure_each is None:
            return finished
        notes = self._tally.measure_each()
        return [
            result._replace(counts={note: 1}) if note else result
            for result, note in zip(finished, notes, strict=False)
        ]

    def _encoded(self, line: Line, returned: object, record: Record) -> Finished:
        try:
            encoded, disposition = encode_outcome(returned, record, self._keeper)
        except FileNotStoredError:
            raise
        except Exception as error:  # noqa: BLE001 - a failure of this record alone
            return Finished(line, raised(error))
        copy = compact_copy(encoded)  # it waits for the others of its batch or span
        return Finished(line, copy, disposition)

    def _of_window(self, lines: Sequence[Line], returned: object) -> list[Finished]:
        """Return the outcome of a whole batch: the first line has the records of all."""
        if not isinstance(returned, list):
            kind = type(returned).__name__
            msg = f"returned a {kind} for a batch; return a list of dicts"
            raise ContractError(msg)
        encoded, _ = encode_outcome(returned, {}, self._keeper)
        if isinstance(returned, PackedWindow):
            return _of_packed(lines, returned, encoded)
        first, *others = lines
        merged = [Finished(line, b"", MERGED) for line in others]
        return [Finished(first, encoded, emitting(len(returned))), *merged]


def _of_packed(lines: Sequence[Line], window: PackedWindow, encoded: bytes) -> list[Finished]:
    """Return the outcome of a window of packs: its first packed record has the packs of all."""
    finished: list[Finished] = []
    written = not window
    for place, line in enumerate(lines):
        if place in window.failed:
            finished.append(Finished(line, raised(window.failed[place])))
        elif place in window.unused:
            finished.append(Finished(line, b"", dropped_for(_UNUSED)))
        elif written:
            finished.append(Finished(line, b"", MERGED))
        else:
            finished.append(Finished(line, encoded, emitting(len(window))))
            written = True
    return finished
