"""The check ``failed_records`` by itself: of what was published, without running the operator."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from dagster_dataops.assets.checks.checked_partitions import partitions_to_check
from dagster_dataops.assets.checks.error_rate import error_rate_results, is_asked
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.errors import ResultMissingError


@dataclass(frozen=True, slots=True)
class Published:
    """What was published in a folder.

    Attributes:
        manifest: Counts of the result.
        error_path: The file with the failed records, if it is there.
    """

    manifest: Manifest
    error_path: Path | None

    @classmethod
    def of(cls, folder: NodeFolder) -> "Published":
        """Return what was published in ``folder``.

        Raises:
            ResultMissingError: Nothing was.
        """
        manifest = Manifest.load(folder.manifest)
        if manifest is None:
            raise ResultMissingError(str(folder.result), "nothing was published there yet")
        there = manifest.failed and folder.errors.exists()
        return cls(manifest, folder.errors if there else None)


def check_alone(
    context: StepContext, plan: AssetPlan, dataops: DataOpsResource
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of the check over what was published, if it was asked for.

    Raises:
        ResultMissingError: Nothing was.
    """
    key = plan.spec.key
    if plan.error_rate is None or not is_asked(context, key):
        return
    partitions = partitions_to_check(context, key, plan.spec.partitions_def)
    found = [Published.of(dataops.folder(key.path, partition)) for partition in partitions]
    yield from error_rate_results(context, key, plan.error_rate, found)
