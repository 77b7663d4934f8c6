"""Pages with records of a node: those of its result, and the failed ones."""

from collections.abc import Sequence
from typing import Any

from dagster_dataops.pipelines.view.records.conditions import MOST, TESTS, Conditions
from dagster_dataops.pipelines.view.records.failed_records import failed_records
from dagster_dataops.pipelines.view.records.searches import search
from dagster_dataops.pipelines.view.records.viewed_file import ReadLine, ViewedFile, indexed
from dagster_dataops.pipelines.view.server.page_request import PageRequest
from dagster_dataops.pipelines.view.server.paging import ROWS, SOON, page_size, paged, waiting
from dagster_dataops.pipelines.view.shown.redo_conditions import (
    RedoCondition,
    of_failed,
    of_search,
)
from dagster_dataops.pipelines.view.shown.redo_offer import RedoOffer, is_chain
from dagster_dataops.pipelines.view.shown.shown_cells import Row, cell, columns_of_rows


def records_page(request: PageRequest) -> dict[str, Any]:
    """Return the records of a result, or those that a search finds."""
    query = request.query
    names = ("column", "is", "value")
    conditions = Conditions.of_form(query.get("q", ""), *map(query.getlist, names))
    ours = request.node.is_published(request.output)
    with indexed(request.location, request.view.works, ours=ours) as file:
        context = {
            "conditions": conditions,
            "tests": list(TESTS),
            "most_conditions": MOST,
            "sizes": ROWS,
            "index": {"percent": file.work.percent, "ready": file.index is not None},
            "note": file.work.error,
        }
        if conditions:
            return context | _found(request, file, conditions)
        total = file.index.record_count if file.index else request.node.rows(request.output)
        first = min(request.number("from", 1, 1), max(total, 1)) - 1
        waits = file.index is None and first > 0  # the first records need no index
        lines = [] if waits else file.lines(first, page_size(request))
    context |= paged(request, first, total, len(lines))
    refresh = SOON if waits and not file.work.error else 0
    return context | _table(lines, conditions) | {"refresh": refresh}


def _found(request: PageRequest, file: ViewedFile, conditions: Conditions) -> dict[str, Any]:
    """Return the records of a page that a search has found until now."""
    if file.index is None:
        return _table([], conditions) | waiting(file.work)
    work = search(file, conditions, request.view.works)
    matches, size = work.result, page_size(request)
    if matches is None:
        return _table([], conditions) | waiting(work)
    first = request.number("from", 1, 1) - 1
    records = matches.records[first : first + size]
    lines = file.records(records)
    searched = {
        "records": matches.searched,
        "found": len(matches.records),
        "ready": work.ready,
        "limited": matches.limited,
        "all": file.index.record_count,
    }
    context = paged(request, first, len(matches.records), len(records))
    waits = not work.ready and len(records) < size
    context |= {"refresh": SOON if waits else 0, "searched": searched}
    context["note"] = f"The search failed: {work.error}" if work.error else ""
    table = _table([lines[record] for record in records], conditions)
    if records:
        context["redo"] = _redo(request, conditions, table["rows"])
    return context | table


def _redo(request: PageRequest, conditions: Conditions, rows: Sequence[Row]) -> RedoOffer:
    if len(request.node.outputs) > 1:
        condition = RedoCondition(reason="conditions read the lines of all outputs of an operator.")
    else:
        columns = {name for row in rows for name in row.record}
        condition = of_search(conditions, columns, chain=is_chain(request.node.manifest))
    return RedoOffer.of(request.node, condition, published=request.is_published)


def _table(lines: Sequence[ReadLine], conditions: Conditions) -> dict[str, Any]:
    records = [line.shown() for line in lines]
    names, left = columns_of_rows(records)
    texts = [
        condition.value for condition in conditions.columns if condition.test in {"contains", "is"}
    ]
    marks = [text for text in (conditions.text, *texts) if text]
    rows = [
        Row(
            line.number,
            record,
            [cell(record, name, line.number, marks) for name in names],
            {"size": line.size, "whole": line.whole},
        )
        for line, record in zip(lines, records, strict=True)
    ]
    return {"columns": names, "columns_left": left, "rows": rows}


def failed_page(request: PageRequest) -> dict[str, Any]:
    """Return the failed records of a node, grouped by cause."""
    manifest = request.node.manifest
    path = manifest.error_file(request.node.folder) if manifest else None
    context: dict[str, Any] = {"path": path, "sizes": ROWS, "groups": [], "rows": []}
    if path is None:
        return context | {"total": 0}
    with indexed(path, request.view.works) as file:
        work = failed_records(file, request.view.works) if file.index else file.work
        if work.error or not work.ready or file.index is None:
            return context | waiting(work) | {"total": 0}
        groups = work.result
        wanted = request.number("group", -1, -1)
        chosen = groups.records(wanted if "group" in request.query else None)
        first = min(request.number("from", 1, 1), max(1, len(chosen))) - 1
        records = list(chosen[first : first + page_size(request)])
        lines = file.records(records)
    if chosen:
        group = groups.groups[wanted] if "group" in request.query else None
        condition = of_failed(group, groups.groups)
        offer = RedoOffer.of(request.node, condition, published=request.is_published)
        context |= {"redo": offer}
    context |= {"groups": groups.groups, "group": wanted if "group" in request.query else None}
    context |= paged(request, first, len(chosen), len(records))
    return context | {"rows": [lines[record].shown() for record in records if record in lines]}
