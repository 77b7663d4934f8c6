"""Changed records: input and output of a node side by side, for some records."""

import random
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.places.opening import exists
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.kinds.kind_table import kind_named
from dagster_dataops.pipelines.reporting.distributions import columns_of
from dagster_dataops.pipelines.reporting.excerpts import excerpts, shown_line
from dagster_dataops.pipelines.reporting.published_nodes import PublishedNode
from dagster_dataops.pipelines.reporting.record_changes import changes
from dagster_dataops.pipelines.tracing.record_file import FoundLine
from dagster_dataops.pipelines.tracing.record_map import failed_indices
from dagster_dataops.pipelines.tracing.traced_node import NodeEntry, Ref, TracedNode, lines_of
from dagster_dataops.pipelines.tracing.trail import outcome_of, reasons_of
from dagster_dataops.pipelines.tracing.unchanged_files import unchanged
from dagster_dataops.records import text_of

_LOOKED_AT: Final = 500  # records of a node
_LONGEST: Final = 32 << 10  # bytes of a line
_SHOWN: Final = {"kept": 8, "split": 3, "merged": 3, "dropped": 3}
_LINES: Final = 3  # lines of one record
_MOST_COLUMNS: Final = 12
_Side: TypeAlias = Sequence[Mapping[str, Any]]
_Records: TypeAlias = tuple[_Side, _Side]
_SOURCE: Final = "The node has no input of records."
_STREAM: Final = "The node is a stream, which is not compared record by record."
_GONE: Final = "The input was temporary and is gone, so that nothing can be compared."


def changed_records(node: PublishedNode, manifest: Manifest) -> dict[str, Any]:
    """Return some records that a node changed, chosen evenly over its input.

    Returns:
        ``looked`` and ``changed``, numbers of records; ``columns``, the facts about the columns of
        these records before and after the node, ``columns_left``, the number of further ones, and
        ``equal``, the columns that it left as they were in all of them; ``rows`` with ``line``,
        ``outcome``, ``reasons``, of a record that became one the ``changes``, else ``before`` and
        ``after``, lists of columns with their excerpts; ``note``, why there are none.
    """
    try:
        return _compared(TracedNode(node.folder, manifest), manifest)
    except (DataOpsError, OSError) as error:
        return _nothing(str(error))


def _nothing(note: str) -> dict[str, Any]:
    nothing = {"looked": 0, "changed": 0, "rows": []}
    nothing |= {"columns": [], "columns_left": 0, "equal": []}
    return nothing | {"note": note}


def _compared(node: TracedNode, manifest: Manifest) -> dict[str, Any]:
    if not node.inputs:
        return _nothing(_SOURCE)
    if node.end:
        return _nothing(f"No comparison record by record: {node.end}.")
    if kind_named(manifest.kind).trace is Tracing.POSITION:
        return _nothing(_STREAM)
    if not all(exists(source.path) for source in node.inputs):
        return _nothing(_GONE)
    with unchanged(node.results.values(), node.folder.bucket, nodes_before=False):
        for source in node.inputs:
            node.check_input(source.path)
        for result in node.results.values():
            node.check_result(result)
        entries = _entries(node, manifest)
        shown = [
            [*entry.given[:_LINES], *(ref for ref, _ in entry.made[:_LINES])] for entry in entries
        ]
        texts = lines_of(chain.from_iterable(shown), _LONGEST)
    rows = [row for entry in entries if (row := _row(entry, texts)) is not None]
    counted = {"looked": len(entries), "changed": len(rows), "rows": _chosen(rows), "note": ""}
    return counted | _columns([_records(entry, texts) for entry in entries])


def _entries(node: TracedNode, manifest: Manifest) -> list[NodeEntry]:
    """Return the outputs of records spread over the input, without failed ones."""
    wanted = evenly_chosen(sum(source.rows for source in node.inputs), _LOOKED_AT)
    failed = set(wanted).intersection(failed_indices(node.folder, manifest))
    by_inputs: dict[tuple[Ref, ...], NodeEntry] = {}
    for record in wanted:
        if record not in failed:
            for entry in (node.entries_of_record(node.ref_of(record)) or [])[:1]:
                by_inputs[tuple(entry.given[:_LINES])] = entry
    return list(by_inputs.values())


def evenly_chosen(number: int, most: int) -> list[int]:
    """Return at most ``most`` of a number of indices: one at random of each of as many parts.

    Records at equal distances could all be alike, where every tenth is another kind.
    """
    edges = [*_spread(number, most), number]
    chance = random.Random(0)  # noqa: S311 - the same records each time
    return [chance.randrange(first, last) for first, last in pairwise(edges)]


def _spread(number: int, most: int) -> list[int]:
    """Return at most ``most`` of a number of indices, at equal distances."""
    chosen = min(number, most)
    return [number * at // chosen for at in range(chosen)]


def _records(entry: NodeEntry, texts: Mapping[Ref, FoundLine]) -> _Records:
    """Return the whole records of an entry, before and after the node."""
    results = [ref for ref, _ in entry.made[:_LINES]]
    sides = [[texts[ref].text for ref in refs if ref in texts] for refs in (entry.given, results)]
    if any(len(text) >= _LONGEST for side in sides for text in side):
        return [], []
    return list(map(shown_line, sides[0])), list(map(shown_line, sides[1]))


def _columns(pairs: Sequence[_Records]) -> dict[str, Any]:
    """Return the facts about columns before and after, of the same records of the input."""
    before = columns_of(record for inputs, _ in pairs for record in inputs)
    after = columns_of(record for _, results in pairs for record in results)
    single = all(len(inputs) == len(results) for inputs, results in pairs)
    equal = [name for name in after if single and all(_is_equal(name, *pair) for pair in pairs)]
    names = [name for name in {**after, **before} if name not in equal]
    rows = [(text_of(name), before.get(name), after.get(name)) for name in names[:_MOST_COLUMNS]]
    left = len(names) - len(rows)
    return {"columns": rows, "columns_left": left, "equal": list(map(text_of, equal))}


def _is_equal(name: str, records: _Side, results: _Side) -> bool:
    missing = object()
    return all(
        record.get(name, missing) == result.get(name, missing)
        for record, result in zip(records, results, strict=True)
    )


def _row(entry: NodeEntry, texts: Mapping[Ref, FoundLine]) -> dict[str, Any] | None:
    """Return the row of an entry; ``None`` if the record is unchanged."""
    lines = [texts[ref] for ref in entry.given[:_LINES] if ref in texts]
    results = [shown_line(texts[ref].text) for ref, _ in entry.made[:_LINES] if ref in texts]
    outcome = outcome_of(entry.fields, len(entry.given), len(entry.made))
    records = [shown_line(line.text) for line in lines]
    if not lines or (outcome == "kept" and records == results):
        return None
    pair = len(records) == 1 and len(results) == 1
    return {
        "line": lines[0].number,
        "outcome": outcome,
        "reasons": reasons_of(entry.fields),
        "changes": changes(records[0], results[0]) if pair else [],
        "before": [] if pair else list(map(excerpts, records)),
        "after": [] if pair else list(map(excerpts, results)),
        "left_out": entry.left_out + len(entry.made) - len(results),
    }


def _chosen(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return some rows of each outcome, at equal distances."""
    chosen = []
    for outcome, most in _SHOWN.items():
        some = [row for row in rows if row["outcome"] == outcome]
        chosen += [some[at] for at in _spread(len(some), most)]
    return chosen
