"""The job that retries failed records.

Its steps retry the failed records of every result and keep results without failed records. An
operator downstream of a changed result processes the whole new input, or with ``reuse_outcomes``
the records that are new in it.
"""

from collections.abc import Sequence

import dagster as dg

from dagster_dataops.assets.automation.jobs import AssetJob, pipeline_jobs
from dagster_dataops.assets.planning.source_assets import Source, makes_asset
from dagster_dataops.assets.runtime.run_tags import RETRY_TAG


def retry_jobs(
    pipeline: str, source: Source, assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
) -> list[AssetJob]:
    """Return the job ``retry_failed_records_<pipeline>``, and one for unpartitioned assets.

    Args:
        pipeline: Name of the pipeline; may be empty.
        source: Source of the pipeline; its result is kept.
        assets: All assets of the pipeline.
    """
    return pipeline_jobs(
        f"retry_failed_records_{pipeline or 'dataops'}",
        assets[1:] if makes_asset(source) else assets,
        description=(
            "Retries the failed records of every operator's result and puts their new outcomes "
            "in their places. Results without failed records stay as they are; what is "
            "downstream of a result that changed is run over all of its records, or over the new "
            "ones where it uses outcomes again."
        ),
        tags={RETRY_TAG: "true"},
    )
