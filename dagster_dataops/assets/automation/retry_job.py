"""The job that retries failed records.

Its steps retry the failed records of every result and keep results without failed records. An
operator downstream of a changed result processes its whole input again. With ``reuse_outcomes`` it
processes only the records that are new in its input.
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
            "Retries the failed records of every operator's result and inserts their new results "
            "at the same positions. Results without failed records are kept. Operators "
            "downstream of a changed result process all its records again, or only the new "
            "records if they reuse outcomes."
        ),
        tags={RETRY_TAG: "true"},
    )
