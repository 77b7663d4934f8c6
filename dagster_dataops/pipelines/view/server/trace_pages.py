"""Pages about a record: its values, and how each node changed it."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location, local_path
from dagster_dataops.pipelines.reporting.excerpts import shown_line
from dagster_dataops.pipelines.reporting.record_changes import ValueChange, changes
from dagster_dataops.pipelines.tracing.record_file import using_indices
from dagster_dataops.pipelines.tracing.tracer import trace
from dagster_dataops.pipelines.tracing.trail import Place, Step, Trace
from dagster_dataops.pipelines.view.records.background_work import BackgroundWork
from dagster_dataops.pipelines.view.records.viewed_file import ReadLine, indexed, ready_index
from dagster_dataops.pipelines.view.server.page_request import PageRequest, link
from dagster_dataops.pipelines.view.server.paging import SOON, waiting
from dagster_dataops.pipelines.view.shown.shown_cells import LONG, MOST_COLUMNS, cell
from dagster_dataops.pipelines.view.viewed_root import ViewedNode

_SHOWN: Final = 5  # records of a step
_MOST_LEAVES: Final = 4


@dataclass(frozen=True)
class ShownStep:
    """The outcome of a record in a node.

    It has ``changes`` if the node wrote one record for one, else address and text of each
    record that it ``made``, and the number of those that are left out.
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
    source = traced.inputs[at]
    with indexed(source.path, request.view.works, ours=source.is_ours) as file:
        if file.index is None:
            return waiting(file.work)
        line = file.record_of_line(number)
    if line is None:
        raise InputError(str(source.path), f"has no record in line {number:,}")

    def traces() -> list[Trace]:
        maker = request.view.root.node_of_result(str(source.path))
        before = [trace(_path(maker[0].result(maker[1])), number)] if maker else []
        folder = request.node.folder.path
        return [*before, trace(folder, source_line=number, source=str(source.path))]

    way = _way(request, ("input", at, number), traces)
    return {"number": number, "path": source.path, **_values(line), **way}


def _traces(request: PageRequest, number: int, leaves: Sequence[ViewedNode]) -> list[Trace]:
    """Return the way of a record of a result from its sources, and to each of some last nodes."""
    path = _path(request.location)
    later = [trace(leaf.folder.path, source_line=number, source=path) for leaf in leaves]
    return [trace(path, number), *later]


def _path(location: Location) -> str:
    """Return the path of a file of this machine; refuse an object."""
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
    """Return how each node changed a record, once the trace is there."""
    manifest = request.node.manifest
    key = ("way", request.node.key, asked, manifest and (manifest.run, manifest.modified_ns))

    def follow(_: BackgroundWork) -> list[Trace]:
        with using_indices(lambda location: ready_index(location, request.view.works)):
            return traces()

    work = request.view.works.begun(key, follow, urgent=True)
    context: dict[str, Any] = {"steps": [], "ends": [], "sources": [], "way": work}
    if not work.ready or work.error:
        return context | {"refresh": 0 if work.error else SOON}
    trails: list[Trace] = work.result
    steps = {(step.node, step.given, step.made): step for trail in trails for step in trail.steps}
    return context | {
        "steps": [_step(request, step) for step in steps.values()],
        "ends": list(dict.fromkeys(str(end) for trail in trails for end in trail.ends)),
        "sources": trails[0].sources,
    }


def _step(request: PageRequest, step: Step) -> ShownStep:
    inputs, outputs = step.given, step.made
    pairs = len(inputs) == 1 and len(outputs) == 1
    texts = [places[0].text or "" for places in (inputs, outputs) if places]
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
        [] if pairs else [_made(request, place) for place in outputs[:_SHOWN]],
        max(0, len(outputs) - _SHOWN) + step.left_out,
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
    maker = request.view.root.node_of_result(place.path)
    if maker is None:
        return "", place.text or ""
    node, output = maker
    return link("record", node.key, output=output, line=place.line), place.text or ""


def _record(text: str) -> dict[str, Any]:
    return shown_line(text.encode(errors="replace")) if text else {}
