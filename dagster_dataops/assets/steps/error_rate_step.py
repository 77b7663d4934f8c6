"""The check ``failed_records`` over a published result, without a run of the operator."""

from collections.abc import Iterator

import dagster as dg

from dagster_dataops.assets.checks.checked_partitions import partitions_to_check
from dagster_dataops.assets.checks.error_rate import RunResult, error_rate_results, is_selected
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.errors import ResultMissingError


def check_alone(
    context: StepContext, plan: AssetPlan, dataops: DataOpsResource
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of the check over each published result, if the check is selected.

    Raises:
        ResultMissingError: Nothing was published.
    """
    for spec in plan.specs:
        key = spec.key
        if plan.error_rate is None or not is_selected(context, key):
            continue
        partitions = partitions_to_check(context, key, spec.partitions_def)
        found = [_result_in(dataops.folder(key.path, partition)) for partition in partitions]
        yield from error_rate_results(context, key, plan.error_rate, found)


def _result_in(folder: NodeFolder) -> RunResult:
    manifest = Manifest.load(folder.manifest)
    if manifest is None:
        raise ResultMissingError(str(folder.result), "nothing was published there yet")
    return manifest, manifest.error_file(folder)
