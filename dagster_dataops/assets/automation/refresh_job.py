"""The job that materializes stale assets and everything downstream of them.

Its run covers the whole pipeline. Dagster selects assets before the run, but an asset further
downstream may only become stale during the run. A step keeps its result if the operator, options,
code and input are unchanged, and reports the same data version.
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
            "Materializes every result that is missing or whose operator, options, code or input "
            "have changed, and all results downstream of it. Other results are kept, without a "
            "call of their operators. A source function is called only if its code has changed."
        ),
        tags={REFRESH_TAG: "true"},
    )
