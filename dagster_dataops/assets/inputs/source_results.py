"""Results of source functions: written once, and taken again where a call would repeat a query."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dagster as dg

from dagster_dataops.assets.runtime.run_tags import refreshes
from dagster_dataops.assets.runtime.step_context import Context
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, published, write_result
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.hashing.code import code_digest

_Function = Callable[..., Any]


def standing_source(
    context: Context, folder: NodeFolder, function: _Function
) -> JsonlDataset | None:
    """Return the earlier result of a source function if it may stand, else ``None``.

    It stands in a retry of the function's step, in a re-execution of a run that did not succeed,
    and in a run of the refresh job, if the code is the same and the result was not edited.

    Args:
        context: Of its step.
        folder: Of its asset, or of a partition of it.
        function: The function.
    """
    found = published(folder)
    if found is None or found[1].made_from != _made_from(function):
        return None
    dataset, manifest = found
    if not refreshes(context) and manifest.run not in _repeated_runs(context):
        return None
    text = (
        f"{folder.name}: the {manifest.rows_out:,} records that the source function gave in run "
        f"{manifest.run} are taken; a new materialization calls it again"
    )
    context.log.info(text)
    return dataset


def write_source(
    context: Context, folder: NodeFolder, function: _Function, records: Iterable[object]
) -> JsonlDataset:
    """Publish what a source function gave; arguments as `standing_source`.

    Raises:
        InputError: Some of it is no record.
    """
    return write_result(folder, records, context.run.run_id, _made_from(function))


def _made_from(function: _Function) -> dict[str, str]:
    return {"source": code_digest(function)}


def _repeated_runs(context: Context) -> Iterator[str]:
    """Yield this run and those that it re-executes, back to the last one that succeeded."""
    yield context.run.run_id
    parent = context.run.parent_run_id
    while parent is not None:
        run = context.instance.get_run_by_id(parent)
        if run is None or run.status is dg.DagsterRunStatus.SUCCESS:
            return
        yield parent
        parent = run.parent_run_id
