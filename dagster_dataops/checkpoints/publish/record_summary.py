"""RecordSummary: outcomes of the records of a result, from the notes of its spans."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import accumulate
from typing import Any, Final

import orjson

from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import Counts, SpanNotes
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.file_values.file_reads import COUNT as READ_FILES
from dagster_dataops.datasets.lines import LineCounter, split_lines
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import Readable, read_range
from dagster_dataops.operators.outcomes.column_watch import missing_counts
from dagster_dataops.operators.outcomes.dispositions import USUAL, reasons_in
from dagster_dataops.operators.outcomes.record_context import shown_counts

_EXAMPLES: Final = 3
_EXAMPLE_BYTES: Final = 400


@frozen()
class RecordSummary:
    """Outcomes of the records of a result.

    Attributes:
        counts: The operator's counts, summed over every try of every record.
        drops: Number of dropped records by reason, the most frequent first. Records that were
            dropped without a reason do not count.
        drop_examples: The first dropped records of each reason, in input order; each with ``line``,
            counted from 1, and ``input``, the text of the line, cut.
        funnel: Of a chain: what became of the records in each part; see `funnel`.
    """

    counts: Counts = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)
    drop_examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    funnel: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(
        cls, table: SpanTable, dataset: JsonlDataset, parts: Sequence[str] = ()
    ) -> "RecordSummary":
        """Return the summary of a complete table."""
        tally: Counter[bytes] = Counter()
        for notes in table.notes.values():
            tally.update(notes.tally())
        drops = drops_in(tally)
        reads = {name: table.counts[name] for name in (READ_FILES,) if name in table.counts}
        return cls(
            counts=shown_counts(table.counts) | missing_counts(table.counts, parts) | reads,
            drops=drops,
            drop_examples=_examples(table, dataset) if drops else {},
            funnel=funnel(parts, table, tally) if parts else [],
        )


def drops_in(tally: "Counter[bytes]") -> dict[str, int]:
    """Return the number of dropped records by reason, the most frequent first."""
    drops: Counter[str] = Counter()
    for disposition, number in tally.items():
        for reason, times in reasons_in(orjson.loads(disposition)):
            if reason:
                drops[reason] += times * number
    return dict(drops.most_common())


class DropExamples:
    """Collects the first dropped records of each reason."""

    def __init__(self, source: Readable) -> None:
        self.found: dict[str, list[dict[str, Any]]] = {}
        self._full: set[bytes] = set()  # dispositions whose reasons have enough examples
        self._counter = LineCounter(source)

    def add(self, notes: SpanNotes, lines: Callable[[], Iterable[tuple[int, bytes]]]) -> None:
        """Add the dropped records of a span; call it in input order.

        Args:
            notes: Of the span.
            lines: Returns byte position and line of each record of the span; called if needed.
        """
        if self._full.issuperset(notes.table):
            return
        for (start, line), code in zip(lines(), notes.codes, strict=True):
            if code:
                self._add(notes.table[code - 1], start, line.rstrip())

    def _add(self, disposition: bytes, start: int, line: bytes) -> None:
        reasons = [reason for reason in orjson.loads(disposition).get("dropped", ()) if reason]
        wanted = [reason for reason in reasons if len(self.found.get(reason, ())) < _EXAMPLES]
        if not wanted:
            self._full.add(disposition)
        for reason in dict.fromkeys(wanted):
            text = line[:_EXAMPLE_BYTES].decode(errors="replace")
            example = {"line": self._counter.line_at(start), "input": text}
            self.found.setdefault(reason, []).append(example)


def _examples(table: SpanTable, dataset: JsonlDataset) -> dict[str, list[dict[str, Any]]]:
    with opened(dataset.location) as source:
        examples = DropExamples(source)
        for span, _, _ in table.ordered():
            notes = table.notes.get(span.start)
            if notes is not None:
                examples.add(notes, partial(_records_of, source, span))
    return examples.found


def _records_of(source: Readable, span: Span) -> Iterator[tuple[int, bytes]]:
    """Yield byte position and line of the records of a span, in order."""
    lines = split_lines(read_range(source, span.start, span.length))
    places = accumulate(map(len, lines), initial=span.start)
    return ((at, line) for at, line in zip(places, lines, strict=False) if not line.isspace())


def funnel(
    parts: Sequence[str], table: SpanTable, unusual: "Counter[bytes]"
) -> list[dict[str, Any]]:
    """Return the numbers of records by outcome in each part.

    A row has the ``name`` of the part, the records that ``entered`` it, that it ``emitted`` and
    ``dropped``, the input records that ``failed`` in it, and its ``seconds``: an estimate, with
    those of every try. A record that failed outside the parts, such as an invalid line or one that
    ended its worker, is in no part.

    Args:
        parts: The names of the parts.
        table: The settled spans.
        unusual: Number of records of each disposition in spans with notes.
    """
    from dagster_dataops.operators.chains.chain_calls import seconds_of  # only for chains

    rows = [{"name": name, "entered": 0, "emitted": 0, "dropped": 0, "failed": 0} for name in parts]
    tally = unusual.copy()
    tally[USUAL] += table.records - unusual.total()
    by_fields = [(orjson.loads(disposition), number) for disposition, number in tally.items()]
    in_parts = sum(number for fields, number in by_fields if "failed" in fields)
    for fields, number in by_fields:
        _add(rows, fields, number if fields else number - (table.failed - in_parts))
    return [
        {**row, "seconds": round(seconds_of(table.counts, part), 3)}
        for part, row in enumerate(rows)
    ]


def _add(rows: list[dict[str, Any]], fields: dict[str, Any], records: int) -> None:
    """Add records with one disposition."""
    from dagster_dataops.operators.chains.chain_calls import part_of

    entered: list[int] = fields.get("entered", [1] * len(rows))
    emitted = [*entered[1:], 0 if "failed" in fields else fields.get("emitted", 1)]
    for row, count, other in zip(rows, entered, emitted, strict=False):
        row["entered"] += count * records
        row["emitted"] += other * records
    for reason, number in reasons_in(fields):
        name = part_of(reason)
        for row in rows:
            if row["name"] == name:
                row["dropped"] += number * records
    if "failed" in fields:
        rows[fields["failed"]]["failed"] += records
