"""The page with the dropped records of a node: the reasons, the numbers behind them, the pairs."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import DataOpsError
from dagster_dataops.foundation.parts import function_of_part
from dagster_dataops.operators.kinds.kind import Tracing
from dagster_dataops.operators.kinds.kind_table import kind_named
from dagster_dataops.pipelines.reporting.record_changes import side_by_side
from dagster_dataops.pipelines.tracing.record_map import failed_indices
from dagster_dataops.pipelines.tracing.traced_node import TracedNode
from dagster_dataops.pipelines.view.records.background_work import BackgroundWork
from dagster_dataops.pipelines.view.records.searches import (
    DroppedRecords,
    InputRecord,
    dropped_records,
    input_records,
)
from dagster_dataops.pipelines.view.server.page_request import PageRequest
from dagster_dataops.pipelines.view.server.paging import ROWS, SOON, page_size, paged, waiting
from dagster_dataops.pipelines.view.shown.redo_conditions import of_dropped
from dagster_dataops.pipelines.view.shown.redo_offer import RedoOffer, is_chain
from dagster_dataops.pipelines.view.shown.shown_cells import Row, cell, columns_of_rows

_AT_ONCE: Final = 50_000  # records of an input whose pairs are found without being asked for
_MOST_PAIRED: Final = 2_000_000
_PATTERNS: Final = ("pattern", "patterns")  # options with regular expressions


def dropped_page(request: PageRequest) -> dict[str, Any]:
    """Return the dropped records of a node, read from its inputs."""
    traced, manifest = request.node.traced(), request.node.manifest
    assert manifest is not None  # noqa: S101 - `traced` has checked it
    reason = request.query.get("reason")
    context: dict[str, Any] = {
        "reasons": list(manifest.drops.items()),
        "reason": reason,
        "sizes": ROWS,
        "examples": manifest.drop_examples,
        "rows": [],
        "columns": [],
        "total": 0,
        "pairs": None,
        "limits": {},
    }
    kind = kind_named(manifest.kind)
    if kind.trace is not Tracing.RECORD:
        return context | {"note": f"It is not known which records these are: {kind.as_a_whole}."}
    work = dropped_records(traced, manifest, request.view.works)
    if work.error or not work.ready:
        return context | waiting(work)
    dropped: DroppedRecords = work.result
    chosen = dropped.of_reason(reason)
    first = min(request.number("from", 1, 1), max(1, len(chosen))) - 1
    records = list(chosen[first : first + page_size(request)])
    if chosen:
        context |= {"redo": _redo(request, dropped, reason)}
    context |= {"reasons": dropped.counts()} | paged(request, first, len(chosen), len(records))
    try:
        return context | _rows(request, traced, manifest, dropped, records)
    except (DataOpsError, OSError) as error:  # an input is gone, or was changed
        return context | {"note": str(error)}


def _redo(request: PageRequest, dropped: DroppedRecords, reason: str | None) -> RedoOffer:
    reasons = None if reason is None else dropped.parts[reason]
    condition = of_dropped(reasons, chain=is_chain(request.node.manifest))
    return RedoOffer.of(request.node, condition, published=request.is_published)


def _rows(
    request: PageRequest,
    traced: TracedNode,
    manifest: Manifest,
    dropped: DroppedRecords,
    records: list[int],
) -> dict[str, Any]:
    explainer = function_of_part("drop_explainer")(
        manifest.operator, manifest.options, manifest.made_from.get("options", "")
    )
    pairs = _pairs(request, traced, manifest, dropped, explainer)
    kept = {at: pairs["of"][at] for at in records if at in pairs["of"]} if pairs else {}
    lines = input_records(traced, [*records, *kept.values()], request.view.works)
    names, left = columns_of_rows([lines[at].record for at in records if at in lines])
    patterns = list(_patterns(manifest.options))
    rows = []
    for at in records:
        if at in lines:
            explained = _explained(explainer, lines[at].record, dropped.reason_of(at))
            extra = {
                "input": lines[at].input,
                "path": lines[at].path,
                "reason": dropped.reason_of(at),
                "explained": explained.numbers if explained else {},
                "pair": _pair(lines, at, kept),
            }
            marks = explained.found if explained else ()
            rows.append(_row(lines[at], names, extra, marks, patterns))
    refresh = SOON if len(rows) < len(records) or (pairs and pairs["waits"]) else 0
    several = len({line.path for line in lines.values()}) > 1
    shown = {
        "rows": rows,
        "columns": names,
        "columns_left": left,
        "several": several,
        "pairs": pairs,
    }
    limits = explainer.limits if explainer is not None and explainer.explains else {}
    return shown | {"refresh": refresh, "limits": limits}


def _row(
    line: InputRecord,
    names: Sequence[str],
    extra: Mapping[str, Any],
    marks: Sequence[str],
    patterns: Sequence[Any],
) -> Row:
    record, number = line.record, line.line
    cells = [cell(record, name, number, marks, patterns) for name in names]
    return Row(number, record, cells, extra)


def _explained(explainer: Any, record: dict[str, Any], reason: str) -> Any:
    """Return why a record was dropped; ``None`` if the operator now gives another reason."""
    explanation = explainer.explanation(record) if explainer is not None else None
    return explanation if explanation is not None and explanation.reason == reason else None


def _pair(lines: Mapping[int, InputRecord], at: int, kept: Mapping[int, int]) -> Any:
    """Return the record that a dropped one is a duplicate of, and both side by side."""
    other = lines.get(kept.get(at, -1))
    if other is None:
        return None
    return {
        "line": other.line,
        "input": other.input,
        "columns": side_by_side(other.record, lines[at].record),
    }


def _patterns(options: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the regular expressions among options, compiled by an engine of linear time."""
    try:
        import re2
    except ImportError:  # others can take for ever
        return
    for name in _PATTERNS:
        value = options.get(name, ())
        for pattern in [value] if isinstance(value, str) else value:
            try:
                yield re2.compile(pattern)
            except (re2.error, TypeError):
                continue


def _pairs(
    request: PageRequest,
    traced: TracedNode,
    manifest: Manifest,
    dropped: DroppedRecords,
    explainer: Any,
) -> dict[str, Any] | None:
    """Return which records the dropped ones are duplicates of; ``None`` for other operators.

    Returns:
        ``of``, the kept record of each; ``asked``, whether the search was begun; ``work``;
        ``waits``, whether it goes on; ``possible``, whether there are few enough records.
    """
    if explainer is None or not explainer.pairs_up or not dropped.records:
        return None
    possible = manifest.rows_in <= _MOST_PAIRED
    asked = possible and (manifest.rows_in <= _AT_ONCE or "pairs" in request.query)
    state = {"of": {}, "asked": asked, "possible": possible, "waits": False, "work": None}
    if not asked:
        return state

    def find(work: BackgroundWork) -> dict[int, int]:
        with tempfile.TemporaryDirectory(prefix="dataops-view-") as scratch:
            records = _records(traced, manifest, work)
            kept: dict[int, int] = explainer.kept(records, dropped.records, Path(scratch))
            return kept

    key = ("pairs", request.node.key, manifest.fingerprint, manifest.modified_ns)
    work = request.view.works.begun(key, find)
    waits = not work.ready
    return state | {"of": work.result or {}, "work": work, "waits": waits}


def _records(
    traced: TracedNode, manifest: Manifest, work: BackgroundWork
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of all inputs that did not fail, with their index."""
    failed = set(failed_indices(traced.folder, manifest))
    index = 0
    for source in traced.inputs:
        source.check(traced.name)
        for record in JsonlDataset.at(source.path):
            if index not in failed:
                yield index, record
            index += 1
            if not index % 500:
                work.advance(index, manifest.rows_in)
