"""Pages about one record: its values, and what each node made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.datasets.file_values.result_roots import use_roots_above
from dagster_dataops.errors import DataOpsError, InputError
from dagster_dataops.pipelines.reporting.excerpts import shown_line
from dagster_dataops.pipelines.reporting.record_changes import Change, changes
from dagster_dataops.pipelines.tracing.tracer import trace
from dagster_dataops.pipelines.tracing.trail import Place, Step, Trace
from dagster_dataops.pipelines.view.records.indexed_file import ReadLine, indexed
from dagster_dataops.pipelines.view.server.page_request import PageRequest, link
from dagster_dataops.pipelines.view.shown.cells import LONG, MOST_COLUMNS, cell

_SHOWN: Final = 5  # records of a step
_MOST_LEAVES: Final = 4
_MOST_TRACED: Final = 2_000_000_000  # bytes of a result that is read through for a trace


@dataclass(frozen=True)
class ShownStep:
    """What a node made of a record.

    Attributes:
        node: The name of the node.
        operator: Its operator.
        outcome: What became of the record, in words.
        reasons: Why it was dropped.
        error: The exception and message, if it failed.
        changes: The columns that changed, if one record became one.
        made: Address and text of the records that it became, if they are others than one.
        left_out: The number of further ones.
    """

    node: str
    operator: str
    outcome: str
    reasons: Sequence[str]
    error: str
    changes: Sequence[Change]
    made: Sequence[tuple[str, str]]
    left_out: int


def record_page(request: PageRequest) -> dict[str, Any]:
    """Return one record of a result, and its way through all nodes."""
    number = request.number("line", 1, 1)
    use_roots_above(request.location)
    with indexed(request.location, request.view.works) as file:
        if file.index is None and number > 1:
            return {"refresh": 1, "number": number, "cells": [], "work": file.work}
        line = file.record_of_line(number) if file.index else file.lines(0, 1)[0]
        total = file.index.line_count if file.index else number
    if line is None:
        raise InputError(str(request.location), f"has no record in line {number:,}")
    return {
        "number": number,
        "total": total,
        "previous": request.link("record", line=number - 1) if number > 1 else "",
        "next": request.link("record", line=number + 1) if number < total else "",
        **_values(line),
        **_way(request, number),
    }


def input_page(request: PageRequest) -> dict[str, Any]:
    """Return a record of an input of a node, such as one that it dropped, and its way."""
    traced = request.node.traced()
    at, number = request.number("input", 0), request.number("line", 1, 1)
    if at >= len(traced.inputs):
        raise InputError(request.node.name, f"has no input {at}")
    one = traced.inputs[at]
    with indexed(one.path, request.view.works, ours=one.is_ours) as file:
        if file.index is None:
            return {"refresh": 1, "number": number, "cells": [], "work": file.work}
        line = file.record_of_line(number)
    if line is None:
        raise InputError(str(one.path), f"has no record in line {number:,}")
    context = {"number": number, "path": one.path, **_values(line)}
    steps: list[ShownStep] = []
    maker = request.view.root.node_of_result(str(one.path))
    try:
        before = trace(maker[0].result(maker[1]), number) if maker else None
        after = trace(request.node.folder.path, source_line=number, source=str(one.path))
    except (DataOpsError, OSError) as error:
        return context | {"steps": [], "note": str(error), "ends": [], "sources": []}
    for found in (before, after):
        steps += _steps(request, found) if found else []
    sources = before.sources if before else after.sources
    return context | {"steps": steps, "ends": list(map(str, after.ends)), "sources": sources}


def _values(line: ReadLine) -> dict[str, Any]:
    record = line.shown()
    names = list(record)[:MOST_COLUMNS]
    return {
        "cells": [(name, cell(record, name, line.number, length=LONG)) for name in names],
        "columns_left": len(record) - len(names),
        "size": line.size,
        "whole": line.whole,
    }


def _way(request: PageRequest, number: int) -> dict[str, Any]:
    """Return what each node before and after made of a record."""
    node, root = request.node, request.view.root
    try:
        found = [trace(request.location, number)]
        for last in root.after(node.key)[:_MOST_LEAVES]:
            source = str(request.location)
            found.append(trace(last.folder.path, source_line=number, source=source))
    except (DataOpsError, OSError) as error:
        return {"steps": [], "note": str(error), "ends": [], "sources": []}
    steps = {(step.node, step.given, step.made): step for one in found for step in one.steps}
    return {
        "steps": [_step(request, step) for step in steps.values()],
        "ends": list(dict.fromkeys(str(end) for one in found for end in one.ends)),
        "sources": found[0].sources,
        "files": found[0].files,
    }


def _steps(request: PageRequest, found: Trace) -> list[ShownStep]:
    return [_step(request, step) for step in found.steps]


def _step(request: PageRequest, step: Step) -> ShownStep:
    given, made = step.given, step.made
    pairs = len(given) == 1 and len(made) == 1
    texts = [one[0].text or "" for one in (given, made) if one]
    same = pairs and texts[0] == texts[1]
    error = step.error or {}
    return ShownStep(
        step.node,
        step.operator,
        _outcome(step, same=same),
        [reason if number == 1 else f"{reason} ({number:,})"
         for reason, number in step.reasons.items()],
        f"{error.get('exception')}: {error.get('message')}" if error else "",
        changes(*map(_record, texts)) if pairs and not same else [],
        [] if pairs else [_made(request, one) for one in made[:_SHOWN]],
        max(0, len(made) - _SHOWN) + step.left_out,
    )


def _outcome(step: Step, *, same: bool) -> str:
    if step.outcome == "kept":
        return "not changed" if same else "changed"
    if step.outcome == "split":
        return f"became {len(step.made) + step.left_out:,} records"
    if step.outcome == "merged":
        return f"made of {len(step.given):,} records"
    return f"failed in the part {step.part}" if step.part else step.outcome


def _made(request: PageRequest, place: Place) -> tuple[str, str]:
    found = request.view.root.node_of_result(place.path)
    if found is None:
        return "", place.text or ""
    node, output = found
    return link("record", node.key, output=output, line=place.line), place.text or ""


def _record(text: str) -> dict[str, Any]:
    return shown_line(text.encode(errors="replace")) if text else {}
