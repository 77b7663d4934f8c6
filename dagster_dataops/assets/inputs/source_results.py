"""Results of source functions: written once, and reused if a call would repeat a query."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg

from dagster_dataops.assets.inputs.multi_partition import PartitionResult, materialize_all
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import (
    StepContext,
    refreshes,
    run_of,
    runs_back,
)
from dagster_dataops.assets.runtime.termination import ended_by_interrupts
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, published, write_result
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.runners.given_stream import given_stream, is_stream
from dagster_dataops.foundation.hashing.code import code_digest
from dagster_dataops.foundation.quantities import counted


@dataclass(frozen=True)
class SourceWork:
    """The work of a step that materializes the asset of a source function."""

    function: Callable[..., Any]
    spec: dg.AssetSpec

    def run(
        self, context: StepContext, dataops: DataOpsResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        """Call the function and yield the result, as `materialize_all` does."""

        def make(partition: str | None) -> list[PartitionResult]:
            folder = dataops.folder(self.spec.key.path, partition)
            return [source_result(context, dataops, self.function, folder, partition)]

        return materialize_all(context, [self.spec], make)


def source_result(
    context: StepContext,
    dataops: DataOpsResource,
    function: Callable[..., Any],
    folder: NodeFolder,
    partition: str | None = None,
) -> PartitionResult:
    """Return the published result of a source function: an earlier result, or that of a new call.

    A stream that the function returns is written with a checkpoint, so that a killed run resumes.

    ``function`` returns records or a stream; it takes the partition's key if there is one.

    Raises:
        InputError: The function yielded an item that is not a record.
    """
    made_from = {"source": code_digest(function)}
    dataset = _earlier_result(context, folder, made_from)
    if dataset is None:
        with ended_by_interrupts(context):
            records = function() if partition is None else function(partition)
            if is_stream(records):
                return _stream_result(context, dataops, function, records, folder, partition)
            dataset = write_result(folder, records, run_of(context).run_id, made_from)
    from dagster_dataops.assets.metadata.materialization import dataset_metadata

    return PartitionResult(dataset, dataset_metadata(dataset))


def _earlier_result(
    context: StepContext, folder: NodeFolder, made_from: dict[str, str]
) -> JsonlDataset | None:
    """Return the earlier result of a source function if it may be reused, else ``None``.

    It is reused in a retry of the function's step, in a re-execution of a run that did not
    succeed, and in a run of the refresh job, if the code is the same and the result was not edited.
    """
    result = published(folder, whole=False)
    if result is None or result[1].made_from != made_from:
        return None
    dataset, manifest = result
    if not refreshes(context) and manifest.run not in _repeated_runs(context):
        return None
    text = (
        f"{folder.name}: reusing the {counted(manifest.rows_out, 'records')} that the source "
        f"function returned in run {manifest.run}; a new materialization calls it again"
    )
    context.log.info(text)
    return dataset


def _stream_result(
    context: StepContext,
    dataops: DataOpsResource,
    function: Callable[..., Any],
    stream: object,
    folder: NodeFolder,
    partition: str | None,
) -> PartitionResult:
    operator = given_stream(function.__name__, lambda: stream, function)
    report = dataops.run_operator(context, operator, [], folder)
    from dagster_dataops.assets.metadata.columns.column_metadata import column_metadata
    from dagster_dataops.assets.metadata.materialization import report_metadata

    columns = column_metadata(operator, [], report.dataset)
    return PartitionResult(report.dataset, {**report_metadata(report, partition), **columns})


def _repeated_runs(context: StepContext) -> Iterator[str]:
    """Yield this run and those that it re-executes, back to the last one that succeeded."""
    for run in runs_back(context):
        if run.status is dg.DagsterRunStatus.SUCCESS:
            return
        yield run.run_id
