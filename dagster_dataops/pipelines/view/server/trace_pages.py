"""Pages about one record: its values, and what each node made of it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location, local_path
from dagster_dataops.pipelines.reporting.excerpts import shown_line
from dagster_dataops.pipelines.reporting.record_changes import ValueChange, changes
from dagster_dataops.pipelines.tracing.tracer import trace
from dagster_dataops.pipelines.tracing.trail import Place, Step, Trace
from dagster_dataops.pipelines.view.records.viewed_file import ReadLine, indexed
from dagster_dataops.pipelines.view.server.page_request import PageRequest, link
from dagster_dataops.pipelines.view.server.paging import SOON, waiting
from dagster_dataops.pipelines.view.shown.shown_cells import LONG, MOST_COLUMNS, cell
from dagster_dataops.pipelines.view.viewed_root import ViewedNode

_SHOWN: Final = 5  # records of a step
_MOST_LEAVES: Final = 4


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
    changes: Sequence[ValueChange]
    made: Sequence[tuple[str, str]]
    left_out: int


def record_page(request: PageRequest) -> dict[str, Any]:
    """Return one record of a result, and its way through all nodes."""
    number = request.number("line", 1, 1)
    with indexed(request.location, request.view.works) as file:
        if file.index is None:
            return waiting(file.work)
        line, total = file.record_of_line(number), file.index.line_count
    if line is None:
        raise InputError(str(request.location), f"has no record in line {number:,}")
    leaves = request.view.root.after(request.node.key)
    return {
        "number": number,
        "total": total,
        "previous": request.link("record", line=number - 1) if number > 1 else "",
        "next": request.link("record", line=number + 1) if number < total else "",
        **_values(line),
        "branches_left": max(0, len(leaves) - _MOST_LEAVES),
        **_way(
            request,
            ("record", request.output, number),
            lambda: _traces(request, number, leaves[:_MOST_LEAVES]),
        ),
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
            return waiting(file.work)
        line = file.record_of_line(number)
    if line is None:
        raise InputError(str(one.path), f"has no record in line {number:,}")

    def traces() -> list[Trace]:
        maker = request.view.root.node_of_result(str(one.path))
        before = [trace(_path(maker[0].result(maker[1])), number)] if maker else []
        folder = request.node.folder.path
        return [*before, trace(folder, source_line=number, source=str(one.path))]

    way = _way(request, ("input", at, number), traces)
    return {"number": number, "path": one.path, **_values(line), **way}


def _traces(request: PageRequest, number: int, leaves: Sequence[ViewedNode]) -> list[Trace]:
    """Return the way of a record of a result from its sources, and to each of some last nodes."""
    path = _path(request.location)
    later = [trace(one.folder.path, source_line=number, source=path) for one in leaves]
    return [trace(path, number), *later]


def _path(location: Location) -> str:
    """Return the path of a file of this machine.

    Raises:
        InputError: It is an object.
    """
    path = local_path(location)
    if path is None:
        reason = "is an object on a store; records are followed only in results on this machine"
        raise InputError(str(location), reason)
    return str(path)


def _values(line: ReadLine) -> dict[str, Any]:
    record = line.shown()
    names = list(record)[:MOST_COLUMNS]
    return {
        "cells": [(name, cell(record, name, line.number, length=LONG)) for name in names],
        "columns_left": len(record) - len(names),
        "size": line.size,
        "whole": line.whole,
    }


def _way(
    request: PageRequest, asked: tuple[Hashable, ...], traces: Callable[[], list[Trace]]
) -> dict[str, Any]:
    """Return what each node made of a record, once it is found."""
    manifest = request.node.manifest
    key = ("way", request.node.key, asked, manifest and (manifest.run, manifest.modified_ns))
    work = request.view.works.begun(key, lambda _: traces(), urgent=True)
    context: dict[str, Any] = {"steps": [], "ends": [], "sources": [], "way": work}
    if not work.ready or work.error:
        return context | {"refresh": 0 if work.error else SOON}
    found: list[Trace] = work.result
    steps = {(step.node, step.given, step.made): step for one in found for step in one.steps}
    return context | {
        "steps": [_step(request, step) for step in steps.values()],
        "ends": list(dict.fromkeys(str(end) for one in found for end in one.ends)),
        "sources": found[0].sources,
    }


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
        [
            reason if number == 1 else f"{reason} ({number:,})"
            for reason, number in step.reasons.items()
        ],
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
