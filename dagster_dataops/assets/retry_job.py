"""The job that retries failed records, and how its steps run.

Its steps retry the failed records of every result and leave results without any as they are. What
is downstream of a result that changed has another input then, and is run over all of it, unless
it uses outcomes again: then over the records that were not in it before.
"""

from collections.abc import Sequence
from typing import Final

import dagster as dg

from dagster_dataops.assets.assignments import Context
from dagster_dataops.assets.jobs import AssetJob, pipeline_jobs
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.sources import Source, makes_asset
from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.checkpoints.resuming import ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import RetryOutdatedError, RetryRefusedError
from dagster_dataops.execution.report import RunReport
from dagster_dataops.operators.operator import Operator

RETRY_TAG: Final = "dagster_dataops/retry_failed_records"


def retry_jobs(
    pipeline: str, source: Source, assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
) -> list[AssetJob]:
    """Return the job ``retry_failed_records_<pipeline>``; two of them as `pipeline_jobs` says.

    Args:
        pipeline: Its name; empty for an unnamed one.
        source: Its source, which is never made anew: what it gave is kept.
        assets: All that there are.
    """
    return pipeline_jobs(
        f"retry_failed_records_{pipeline or 'dataops'}",
        assets[1:] if makes_asset(source) else assets,
        description=(
            "Retries the failed records of every operator's result and puts what comes of them "
            "in their places. Results without failed records stay as they are; what is "
            "downstream of a result that changed is run over all of its records, or over the new "
            "ones where it uses outcomes again."
        ),
        tags={RETRY_TAG: "true"},
    )


def run_or_retry(
    dataops: DataOpsResource,
    context: Context,
    operator: Operator,
    inputs: Sequence[JsonlDataset],
    folder: NodeFolder,
    resume: ResumePolicy,
) -> RunReport:
    """Run an operator as `DataOpsResource.run_operator`; in a run of the retry job, its retries.

    There, a step for which the launchpad says something else than ``auto`` does that.

    Raises:
        RetryRefusedError: Its failed records cannot be retried alone, and not because the input
            is another now: the result was edited, or is of another operator.
        DataOpsError: As `OperatorExecutor.run`.
    """
    retries = context.run.tags.get(RETRY_TAG) == "true" and resume is ResumePolicy.AUTO
    if not retries:
        return dataops.run_operator(context, operator, inputs, folder, resume)
    try:
        return dataops.run_operator(context, operator, inputs, folder, ResumePolicy.FAILED_RECORDS)
    except RetryRefusedError as refused:
        whole = operator.__dataops__.spec.kind != "record"
        if not whole and not isinstance(refused, RetryOutdatedError):
            raise
        text = f"{folder.name}: run over all records, since {refused.reason}"
        context.log.info(text)
    return dataops.run_operator(context, operator, inputs, folder, ResumePolicy.AUTO)
