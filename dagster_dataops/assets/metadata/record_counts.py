"""Metadata of an operator's counters, and of the records that it dropped for a reason."""

from collections.abc import Mapping
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import DROP_EXAMPLES, DROPS, FUNNEL, own_key
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.foundation.quantities import percentage
from dagster_dataops.operators.outcomes.record_context import count_tables, plain_counts

_MOST_ROWS: Final = 20


def drop_metadata(manifest: Manifest) -> dict[str, Any]:
    """Return the drops by reason as a table; of a chain also what became of them in its parts."""
    metadata: dict[str, Any] = {}
    if manifest.drops:
        metadata[DROPS] = dg.MetadataValue.md(_drops(manifest))
    if manifest.funnel:
        metadata[FUNNEL] = dg.MetadataValue.md(_funnel(manifest))
    return metadata


def count_metadata(manifest: Manifest) -> dict[str, Any]:
    """Return examples of drops, and each sum as a number, to be plotted.

    The keys are ``drop_examples``, the sums of calls of models (`CALL_COUNTS`), ``counted_`` with
    the name of any other sum of the operator, the names of its tables, and ``latency_p50`` and
    ``latency_p95`` in seconds, of calls of models.
    """
    metadata: dict[str, Any] = {}
    if manifest.drops:
        metadata[DROP_EXAMPLES] = dg.MetadataValue.md(_examples(manifest))
    return metadata | _sums(manifest.counts) if manifest.counts else metadata


def _sums(counts: Mapping[str, float]) -> dict[str, Any]:
    from dagster_dataops.models.replies.latency import LATENCY
    from dagster_dataops.models.replies.reply import CALL_COUNTS

    metadata: dict[str, Any] = {}
    for name, number in plain_counts(counts).items():
        shown = round(number, 9) if isinstance(number, float) else number
        key = name if name in CALL_COUNTS else f"counted_{name}"
        metadata[own_key(key)] = shown
    for name, rows in count_tables(counts).items():
        metadata |= _latency(rows) if name == LATENCY else _counted_table(name, rows)
    return metadata


def _counted_table(name: str, rows: Mapping[str, float]) -> dict[str, Any]:
    """Return a row for every sum of a table, the largest first."""
    shown = sorted(rows.items(), key=lambda row: (-row[1], row[0]))
    text = table([name.replace("_", " "), "count"], [list(row) for row in shown[:_MOST_ROWS]])
    return {own_key(name): dg.MetadataValue.md(text)}


def _latency(rows: Mapping[str, float]) -> dict[str, Any]:
    """Return two quantiles of the seconds of calls, as numbers, to be plotted."""
    from dagster_dataops.models.replies.latency import LATENCY, latency_quantile

    return {
        own_key(f"{LATENCY}_p50"): latency_quantile(rows, 0.5),
        own_key(f"{LATENCY}_p95"): latency_quantile(rows, 0.95),
    }


def _funnel(manifest: Manifest) -> str:
    """Return a row for every part of a chain, in order."""
    header = ["part", "in", "out", "dropped", "failed", "seconds"]
    fields = ("name", "entered", "emitted", "dropped", "failed", "seconds")
    rows = [[row[field] for field in fields] for row in manifest.funnel]
    return table(header, rows, "seconds are estimated from some of the records")


def _drops(manifest: Manifest) -> str:
    """Return records and share of every reason, the most frequent first."""
    rows = [
        [reason, records, percentage(records / manifest.rows_in)]
        for reason, records in manifest.drops.items()
    ]
    return table(["reason", "records", "share"], rows)


def _examples(manifest: Manifest) -> str:
    """Return the first dropped records of every reason, by the line of the input."""
    rows = [
        [reason, example["line"], example["input"]]
        for reason in manifest.drops
        for example in manifest.drop_examples.get(reason, [])
    ]
    return table(["reason", "line", "input"], rows, window=True)
