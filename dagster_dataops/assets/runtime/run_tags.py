"""Run tags that mark the runs of the refresh job and the retry job."""

from typing import Final

from dagster_dataops.assets.runtime.step_context import StepContext

REFRESH_TAG: Final = "dagster_dataops/refresh"
RETRY_TAG: Final = "dagster_dataops/retry_failed_records"


def refreshes(context: StepContext) -> bool:
    """Return whether a step runs in the refresh job."""
    return context.run.tags.get(REFRESH_TAG) == "true"


def retries_failed_records(context: StepContext) -> bool:
    """Return whether a step runs in the job that retries failed records."""
    return context.run.tags.get(RETRY_TAG) == "true"
