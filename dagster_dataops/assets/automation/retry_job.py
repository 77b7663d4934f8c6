"""The job that retries failed records, and how its steps run.

Its steps retry the failed records of every result and leave results without any as they are. What
is downstream of a result that changed has another input then, and is run over all of it, unless
it uses outcomes again: then over the records that were not in it before.
"""

from collections.abc import Sequence

import dagster as dg

from dagster_dataops.assets.automation.jobs import AssetJob, pipeline_jobs
from dagster_dataops.assets.planning.source_assets import Source, makes_asset
from dagster_dataops.assets.runtime.run_tags import RETRY_TAG


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
