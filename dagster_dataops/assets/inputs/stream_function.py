"""What comes of a stream that a function of the user returned while its step was running."""

from collections.abc import Callable
from typing import Any

from dagster_dataops.assets.inputs.multi_partition import Made
from dagster_dataops.assets.metadata.column_metadata import column_metadata
from dagster_dataops.assets.metadata.materialization import report_metadata
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import Context
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.execution.runners.given_stream import given_stream


def made_of_stream(
    context: Context,
    dataops: DataOpsResource,
    function: Callable[..., Any],
    stream: object,
    folder: NodeFolder,
    partition: str | None,
) -> Made:
    """Write a stream as the result in ``folder``, going on from what a killed run left.

    Args:
        context: Of the step.
        dataops: Where and how.
        function: That returned the stream; its code counts as the stream's.
        stream: What it returned.
        folder: Of the asset.
        partition: Of the asset.
    """
    operator = given_stream(function.__name__, lambda: stream, function)
    report = dataops.run_operator(context, operator, [], folder)
    columns = column_metadata({}, [], report.dataset, "stream")
    return Made(report.dataset, {**report_metadata(report, partition), **columns})
