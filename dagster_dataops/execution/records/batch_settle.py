"""Settle batches of input lines: call ``forward_batch``, and divide a batch that fails.

`BatchSettler.steps` makes no call: it yields batches and pauses, so that one code serves plain
calls and coroutines.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.concurrency.stepping import StepError, Steps
from dagster_dataops.datasets.lines import Line
from dagster_dataops.errors import UnencodableError
from dagster_dataops.execution.records.finished_records import Finished
from dagster_dataops.execution.records.record_failures import (
    Failure,
    Outcome,
    failure_of_line,
    in_part,
    raised,
)
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.outcomes.dispositions import (
    MERGED,
    USUAL,
    Disposition,
    dropped_for,
    emitting,
)
from dagster_dataops.operators.outcomes.packed_window import PackedWindow
from dagster_dataops.operators.outcomes.record_context import Tally
from dagster_dataops.operators.outcomes.return_contract import (
    ContractError,
    checked_batch,
    encode_outcome,
)
from dagster_dataops.records import Record, decode


class Pause(NamedTuple):
    """A step: wait before failed records are tried again."""

    seconds: float


_UNUSED: Final = "not packed"

SettleBatch: TypeAlias = Callable[[list[Line]], list[Finished]]
_Settled: TypeAlias = dict[int, tuple[Outcome, Disposition]]  # by where the line starts


class BatchSettler:
    """Settles batches.

    Args:
        operator: The operator.
        retries: Further tries of failed records, in batches of their own.
        tally: Counts of the calls.
    """

    def __init__(self, operator: Operator, retries: Retries, tally: Tally) -> None:
        self._operator = operator
        self._retries = retries
        self._tally = tally
        # A call returns records for the whole batch instead of one outcome a record.
        self._whole = operator.__dataops__.spec.batch == "forward_window"

    def steps(self, lines: Sequence[Line]) -> Steps[list[Finished]]:
        """Settle a batch: yield records to call the operator with, and pauses.

        Returns:
            Every line with its outcome and notes. The counts of the calls are in the notes of the
            first line.
        """
        self._tally.start = lines[0].start
        settled = yield from self._divided(lines)
        tries = self._retries.of_many({at: outcome for at, (outcome, _) in settled.items()})
        for seconds, again in tries:
            yield Pause(seconds)
            more = yield from self._divided([line for line in lines if line.start in again])
            settled |= more
            tries.add({at: outcome for at, (outcome, _) in more.items()})
        tally = self._tally
        counts = tally.take_counts() if tally.used or tally.measure else {}
        outcomes = tries.outcomes
        finished: list[Finished] = []
        for line in lines:
            outcome, disposition = outcomes[line.start], settled[line.start][1]
            if isinstance(outcome, Failure):
                outcome = in_part(outcome, self._operator)
                disposition = outcome.disposition or USUAL
            finished.append((line, outcome, SpanNotes.of(1, [(0, disposition)], counts)))
            counts = {}
        return finished

    def _divided(self, lines: Sequence[Line]) -> Steps[_Settled]:
        """Settle lines by one call; if it fails, by one for each half."""
        settled: _Settled = {}
        valid: list[Line] = []
        records: list[Record] = []
        for line in lines:
            try:
                records.append(decode(line.text))
            except ValueError:
                settled[line.start] = failure_of_line(line.text), USUAL
            else:
                valid.append(line)
        if not valid:
            return settled
        try:
            returned = yield records
            return settled | self._outcomes(valid, records, returned)
        except (StepError, ContractError, UnencodableError) as failed:
            if len(valid) == 1:
                error = failed.error if isinstance(failed, StepError) else failed
                return settled | {valid[0].start: _failed(error)}
        middle = len(valid) // 2
        first = yield from self._divided(valid[:middle])
        second = yield from self._divided(valid[middle:])
        return settled | first | second

    def _outcomes(
        self, lines: Sequence[Line], records: Sequence[Record], returned: object
    ) -> _Settled:
        """Return the outcome of each record from the return value of a call.

        Raises:
            ContractError: It is no list, or a list of the wrong length.
        """
        if self._whole:
            return _of_whole(lines, returned)
        outcomes = checked_batch(returned, len(records))
        return {
            line.start: _outcome(one, record)
            for line, one, record in zip(lines, outcomes, records, strict=True)
        }


def _outcome(returned: object, given: Record) -> tuple[Outcome, Disposition]:
    if isinstance(returned, BaseException):
        return _failed(returned)
    try:
        return encode_outcome(returned, given)
    except Exception as error:  # noqa: BLE001 - a failure of this record alone
        return _failed(error)


def _failed(error: BaseException) -> tuple[Outcome, Disposition]:
    return raised(error), USUAL


def _of_whole(lines: Sequence[Line], returned: object) -> _Settled:
    """Return the outcome of a whole batch: the first line has the records of all."""
    if not isinstance(returned, list):
        kind = type(returned).__name__
        msg = f"returned a {kind} for a batch; return a list of dicts"
        raise ContractError(msg)
    encoded, _ = encode_outcome(returned, {})
    if isinstance(returned, PackedWindow):
        return _of_packed(lines, returned, encoded)
    first, *others = lines
    settled: _Settled = {first.start: (encoded, emitting(len(returned)))}
    return settled | {line.start: (b"", MERGED) for line in others}


def _of_packed(lines: Sequence[Line], window: PackedWindow, encoded: bytes) -> _Settled:
    """Return the outcome of a window of packs: its first packed record has the packs of all."""
    settled: _Settled = {}
    written = not window
    for place, line in enumerate(lines):
        if place in window.failed:
            settled[line.start] = _failed(window.failed[place])
        elif place in window.unused:
            settled[line.start] = b"", dropped_for(_UNUSED)
        elif written:
            settled[line.start] = b"", MERGED
        else:
            settled[line.start] = encoded, emitting(len(window))
            written = True
    return settled
