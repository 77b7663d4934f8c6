"""run_or_retry: run the operator of a step, or retry its failed records in the retry job."""

from collections.abc import Sequence

from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.run_tags import retries_failed_records
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import RetryOutdatedError, RetryRefusedError
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.operators.operator import Operator


def run_or_retry(
    dataops: DataOpsResource,
    context: StepContext,
    operator: Operator,
    inputs: Sequence[JsonlDataset],
    folder: NodeFolder,
    resume: ResumePolicy,
) -> RunReport:
    """Run an operator; in the retry job, retry its failed records.

    A resume policy other than ``auto`` in the launchpad takes precedence over the retry job.

    Raises:
        RetryRefusedError: The failed records cannot be retried alone, because the result was edited
            or belongs to another operator. If the input has changed, all records are processed.
        DataOpsError: As for `DataOpsResource.run_operator`.
    """
    if not retries_failed_records(context) or resume is not ResumePolicy.AUTO:
        return dataops.run_operator(context, operator, inputs, folder, resume)
    try:
        return dataops.run_operator(context, operator, inputs, folder, ResumePolicy.FAILED_RECORDS)
    except RetryRefusedError as refused:
        whole = operator.__dataops__.spec.kind != "record"
        if not whole and not isinstance(refused, RetryOutdatedError):
            raise
        text = f"{folder.name}: processing all records, because {refused.reason}"
        context.log.info(text)
    return dataops.run_operator(context, operator, inputs, folder, ResumePolicy.AUTO)
