"""RecordSummary: what became of the records of a result, from the notes of its spans."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from dagster_dataops.byte_ranges import Readable, opened, read_range
from dagster_dataops.checkpoints.journal.span import Span
from dagster_dataops.checkpoints.journal.span_notes import Counts, SpanNotes
from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.checkpoints.publish.funnel import funnel
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.lines import LineCounter, split_lines
from dagster_dataops.operators.outcomes.dispositions import reasons_in
from dagster_dataops.operators.outcomes.record_context import shown_counts

_EXAMPLES: Final = 3
_EXAMPLE_BYTES: Final = 400


@dataclass(frozen=True, kw_only=True)
class RecordSummary:
    """What became of the records of a result.

    Attributes:
        counts: Sums of what the operator counted, in every try of every record.
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
        """Return the summary of a complete table.

        Args:
            table: The settled spans.
            dataset: The input.
            parts: Names of the parts, if the operator is a chain.
        """
        tally: Counter[bytes] = Counter()
        for notes in table.notes.values():
            tally.update(notes.tally())
        drops = _drops(tally)
        return cls(
            counts=shown_counts(table.counts),
            drops=dict(drops.most_common()),
            drop_examples=_examples(table, dataset) if drops else {},
            funnel=funnel(parts, table, tally) if parts else [],
        )


def _drops(tally: "Counter[bytes]") -> "Counter[str]":
    drops: Counter[str] = Counter()
    for disposition, number in tally.items():
        for reason, times in reasons_in(orjson.loads(disposition)):
            if reason:
                drops[reason] += times * number
    return drops


def _examples(table: SpanTable, dataset: JsonlDataset) -> dict[str, list[dict[str, Any]]]:
    """Return the first dropped records of each reason."""
    examples: dict[str, list[dict[str, Any]]] = {}
    full: set[bytes] = set()  # dispositions whose reasons have enough examples
    with opened(dataset.path) as source:
        counter = LineCounter(source)
        for span, _, _ in table.ordered():
            notes = table.notes.get(span.start)
            if notes is None or full.issuperset(notes.table):
                continue
            for disposition, start, line in _unusual_lines(source, span, notes):
                reasons = [one for one in orjson.loads(disposition).get("dropped", ()) if one]
                wanted = [one for one in reasons if len(examples.get(one, ())) < _EXAMPLES]
                if not wanted:
                    full.add(disposition)
                for reason in dict.fromkeys(wanted):
                    text = line[:_EXAMPLE_BYTES].decode(errors="replace")
                    example = {"line": counter.line_at(start), "input": text}
                    examples.setdefault(reason, []).append(example)
    return examples


def _unusual_lines(
    descriptor: Readable, span: Span, notes: SpanNotes
) -> "list[tuple[bytes, int, bytes]]":
    """Return disposition, byte position and line of the unusual records of a span, in order."""
    found = []
    start, record = span.start, 0
    table = (b"", *notes.table)
    for line in split_lines(read_range(descriptor, span.start, span.length)):
        if not line.isspace():
            if notes.codes[record]:
                found.append((table[notes.codes[record]], start, line.rstrip()))
            record += 1
        start += len(line)
    return found
