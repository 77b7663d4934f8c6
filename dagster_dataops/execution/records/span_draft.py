"""SpanDraft: a span that is built of consecutive records."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.checkpoints.journal.span_notes import Counts, Number, SpanNotes, add_counts
from dagster_dataops.datasets.lines import Line
from dagster_dataops.execution.records.record_failures import Failure, Outcome, error_row
from dagster_dataops.operators.outcomes.dispositions import MERGED, USUAL, Disposition
from dagster_dataops.records import compact_copy

_NOTHING: Final[Mapping[str, Number]] = {}
_Mark: TypeAlias = tuple[int, int, int, int, int, int]


class Finished(NamedTuple):
    """A line and what became of it."""

    line: Line
    outcome: Outcome
    disposition: Disposition = USUAL
    counts: Mapping[str, Number] = _NOTHING


class SpanDraft:
    """A span that is built of consecutive records.

    Attributes:
        output: The result lines.
        errors: The error lines.
        records: Number of records.
        emitted: Number of result lines.
        dropped: Number of records that emitted nothing and did not fail.
        unusual: Position and disposition of every unusual record.
        counts: Sums of what the operator counted.
    """

    def __init__(self) -> None:
        # One growing buffer: orjson allocates 1 KB for each result. Keeping all results until the
        # span is written takes four times as long as encoding.
        self.output = bytearray()
        self.errors: list[bytes] = []
        self.records = self.emitted = self.dropped = 0
        self.unusual: list[tuple[int, Disposition]] = []
        self.counts: Counts = {}

    def fail(self, failure: Failure, line: bytes, operator: str) -> None:
        """Add a failed record.

        Args:
            failure: Its failure, with its place in the input.
            line: Its line, without a newline.
            operator: Qualified name.
        """
        row = error_row(failure, line, operator)
        place = self.records, len(self.output), self.dropped
        from dagster_dataops.checkpoints.journal.failed_record import FailedRecord  # rare

        error_line = FailedRecord(failure.offset, len(line), *place, row).line()
        self.errors.append(compact_copy(error_line))
        if failure.disposition:
            self.unusual.append((self.records, failure.disposition))
        self.records += 1

    def mark(self) -> _Mark:
        """Return the present state, for `undo`."""
        parts = len(self.output), len(self.errors), len(self.unusual)
        return (*parts, self.records, self.emitted, self.dropped)

    def undo(self, mark: _Mark) -> None:
        """Remove the records that were added since `mark`, whose counts are not added yet."""
        output, errors, unusual, self.records, self.emitted, self.dropped = mark
        del self.output[output:], self.errors[errors:], self.unusual[unusual:]

    def finished(self, start: int, length: int, source: bytes | memoryview | None) -> FinishedSpan:
        """Return the span of ``length`` input bytes from ``start`` on; the draft ends with it.

        Args:
            start: Byte position in the input.
            length: Number of input bytes.
            source: The input bytes, if the span is to carry their checksum.
        """
        return FinishedSpan.of(
            start,
            length,
            records=self.records,
            emitted=self.emitted,
            dropped=self.dropped,
            failed=len(self.errors),
            output=self.output,
            errors=b"".join(self.errors),
            source=source,
            notes=SpanNotes.of(self.records, self.unusual, self.counts),
        )


def span_of(finished: Sequence[Finished], operator: str, *, check_input: bool) -> FinishedSpan:
    """Return the span of consecutive records.

    Args:
        finished: The records, in input order, without a gap.
        operator: Qualified name, for error lines.
        check_input: Whether the span needs a checksum of its input.
    """
    draft = SpanDraft()
    for line, outcome, disposition, counts in finished:
        if counts:
            add_counts(draft.counts, counts)
        if isinstance(outcome, Failure):
            draft.fail(outcome._replace(offset=line.start), line.text, operator)
            continue
        draft.output += outcome or b""
        draft.dropped += not outcome and disposition != MERGED
        if disposition is not USUAL:
            draft.unusual.append((draft.records, disposition))
        draft.records += 1
    draft.emitted = draft.output.count(b"\n")
    first, last = finished[0].line, finished[-1].line
    source = b"".join([result.line.raw for result in finished]) if check_input else None
    return draft.finished(first.start, last.end - first.start, source)
