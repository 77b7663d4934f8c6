"""Funnel: numbers of records by outcome in every part of a chain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from dagster_dataops.checkpoints.journal.span_table import SpanTable
from dagster_dataops.operators.chains.chain_calls import part_of, seconds_of
from dagster_dataops.operators.outcomes.dispositions import USUAL, reasons_in

if TYPE_CHECKING:
    from collections import Counter


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
    rows = [{"name": name, "entered": 0, "emitted": 0, "dropped": 0, "failed": 0} for name in parts]
    tally = unusual.copy()
    tally[USUAL] += table.records - unusual.total()
    by_fields = [(orjson.loads(disposition), number) for disposition, number in tally.items()]
    in_parts = sum(number for fields, number in by_fields if "failed" in fields)
    for fields, number in by_fields:
        usual = not fields
        _add(rows, fields, number - (table.failed - in_parts if usual else 0))
    return [
        {**row, "seconds": round(seconds_of(table.counts, part), 3)}
        for part, row in enumerate(rows)
    ]


def _add(rows: list[dict[str, Any]], fields: dict[str, Any], records: int) -> None:
    """Add records with one disposition."""
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
