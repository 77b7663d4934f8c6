"""The job that materializes stale assets and everything downstream of them.

Its run covers the whole pipeline: Dagster selects assets before the run, and a stale asset further
downstream shows only during the run. A step whose result already has the operator, options, code
and input of the step keeps the result and reports the same data version.
"""

from collections.abc import Sequence

import dagster as dg

from dagster_dataops.assets.automation.jobs import AssetJob, pipeline_jobs
from dagster_dataops.assets.runtime.run_tags import REFRESH_TAG


def refresh_jobs(
    title: str, assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
) -> list[AssetJob]:
    """Return the job ``<title>_refresh``, and another for unpartitioned assets."""
    return pipeline_jobs(
        f"{title}_refresh",
        assets,
        description=(
            "Makes every result that is missing or whose operator, options, code or input have "
            "changed, and all that is downstream of it. Other results stand, and nothing is "
            "called for them; nor is a source function whose code is as it was."
        ),
        tags={REFRESH_TAG: "true"},
    )
