"""The job that makes what is stale, with all that is downstream of it, and leaves the rest.

Its run covers the whole pipeline, since Dagster chooses assets before a run begins, and what is
stale further downstream shows only as the run goes on. A step whose result is already that of its
operator, options, code and input takes it as it stands, and Dagster is told the same data version.
"""

from collections.abc import Sequence

import dagster as dg

from dagster_dataops.assets.automation.jobs import AssetJob, pipeline_jobs
from dagster_dataops.assets.runtime.run_tags import REFRESH_TAG


def refresh_jobs(
    title: str, assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
) -> list[AssetJob]:
    """Return the job ``<title>_refresh``; two of them as `pipeline_jobs` says."""
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
