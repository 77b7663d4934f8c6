"""Finished records: lines with their outcomes, and the span that consecutive ones form."""

from collections.abc import Sequence
from typing import TypeAlias

from dagster_dataops.checkpoints.journal.settled_span import SettledSpan
from dagster_dataops.checkpoints.journal.span_notes import Counts, SpanNotes, add_counts, joined
from dagster_dataops.datasets.lines import Line
from dagster_dataops.execution.records.record_failures import Failure, Outcome, failed_record
from dagster_dataops.operators.outcomes.dispositions import MERGED

Finished: TypeAlias = tuple[Line, Outcome, SpanNotes | None]


def span_of(finished: Sequence[Finished], operator: str, *, check_input: bool) -> SettledSpan:
    """Return the span of consecutive records.

    Args:
        finished: The records, in input order, without a gap.
        operator: Qualified name, for error lines.
        check_input: Whether the span needs a checksum of its input.
    """
    output = bytearray()
    errors: list[bytes] = []
    dropped = 0
    for position, (line, outcome, notes) in enumerate(finished):
        if isinstance(outcome, Failure):
            failure = outcome._replace(offset=line.start)
            before = {"position": position, "output": len(output), "dropped": dropped}
            errors.append(failed_record(failure, line.text, operator, **before).line())
        elif outcome:
            output += outcome
        else:
            dropped += notes is None or MERGED not in notes.table
    first, last = finished[0][0], finished[-1][0]
    return SettledSpan.of(
        first.start,
        last.end - first.start,
        records=len(finished),
        emitted=output.count(b"\n"),
        dropped=dropped,
        failed=len(errors),
        output=output,
        errors=b"".join(errors),
        source=_raw(finished) if check_input else None,
        notes=_joined_notes(finished),
    )


def _joined_notes(finished: Sequence[Finished]) -> SpanNotes | None:
    """Return the notes of records that form one span."""
    parts = [(1, notes) for _, _, notes in finished]
    found = [notes for _, notes in parts if notes is not None]
    if not found:
        return None
    counts: Counts = {}
    for notes in found:
        add_counts(counts, notes.counts)
    return joined(parts, counts)


def _raw(finished: Sequence[Finished]) -> bytes:
    """Return consecutive lines unchanged, as in the file."""
    last = finished[-1][0]
    return b"\n".join([line.text for line, *_ in finished[:-1]] + [last.raw])
