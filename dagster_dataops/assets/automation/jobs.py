"""Jobs of a pipeline: one for all assets, or two if only some of the assets are partitioned."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.planning.asset_plan import SourceAsset
from dagster_dataops.assets.runtime.step_context import REFRESH_TAG, RETRY_TAG

# Dagster exports no name for the result of define_asset_job.
AssetJob: TypeAlias = Any


def pipeline_jobs(
    name: str,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    executor: dg.ExecutorDefinition,
    source_checks: Sequence[dg.AssetCheckKey] = (),
    **keywords: Any,
) -> list[AssetJob]:
    """Return the jobs that materialize a pipeline; the job of partitioned assets is the first.

    Unpartitioned assets of a partitioned pipeline have their own job. In a run of one partition
    they would find the other partitions missing, or they would be materialized once per partition.

    Args:
        name: Name of the first job.
        assets: Assets of the pipeline, or some of them, with their checks.
        executor: Executor of the jobs.
        source_checks: Checks of the source that the first job also runs.
        keywords: Further arguments of ``dg.define_asset_job``.
    """
    keywords["executor_def"] = executor
    partitioned: list[dg.AssetKey] = []
    rest: list[dg.AssetKey] = []
    for asset in assets:
        if isinstance(asset, dg.AssetsDefinition):
            for key in asset.keys:
                whole = asset.specs_by_key[key].partitions_def is None
                (rest if whole else partitioned).append(key)
    if partitioned and rest:
        whole = _job(f"{name}_unpartitioned", rest, (), keywords)
        return [_job(name, partitioned, source_checks, keywords), whole]
    return [_job(name, partitioned or rest, source_checks, keywords)]


def _job(
    name: str,
    keys: Sequence[dg.AssetKey],
    checks: Sequence[dg.AssetCheckKey],
    keywords: Mapping[str, Any],
) -> AssetJob:
    selection: dg.AssetSelection = dg.AssetSelection.assets(*keys)
    if checks:
        selection |= dg.AssetSelection.checks(*checks)
    return dg.define_asset_job(name, selection=selection, **keywords)


def refresh_jobs(
    title: str,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    executor: dg.ExecutorDefinition,
) -> list[AssetJob]:
    """Return the job ``<title>_refresh``, and another for unpartitioned assets.

    It materializes stale assets and everything downstream of them. Its run covers the whole
    pipeline: Dagster selects assets before the run, and a stale asset further downstream shows only
    during the run. A step whose result already has the operator, options, code and input of the
    step keeps the result and reports the same data version.
    """
    return pipeline_jobs(
        f"{title}_refresh",
        assets,
        executor,
        description=(
            "Materializes every result that is missing or whose operator, options, code or input "
            "have changed, and all results downstream of it. Other results are kept, without a "
            "call of their operators. A source function is called only if its code has changed."
        ),
        tags={REFRESH_TAG: "true"},
    )


def retry_jobs(
    pipeline: str,
    origin: SourceAsset,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    executor: dg.ExecutorDefinition,
) -> list[AssetJob]:
    """Return the job ``<pipeline>_retry_failed_records``, and one for unpartitioned assets.

    Its steps retry the failed records of every result and keep results without failed records. An
    operator downstream of a changed result processes the whole new input, or with
    ``reuse_outcomes`` the records that are new in it.

    Args:
        pipeline: Name of the pipeline; may be empty.
        origin: Asset of the source; if the pipeline writes it, its result is kept.
        assets: All assets of the pipeline.
        executor: Executor of the jobs.
    """
    return pipeline_jobs(
        f"{pipeline or 'dataops'}_retry_failed_records",
        assets[1:] if isinstance(origin.definition, dg.AssetsDefinition) else assets,
        executor,
        description=(
            "Retries the failed records of every operator's result and inserts their new results "
            "at the same positions. Results without failed records are kept. Operators "
            "downstream of a changed result process all its records again, or only the new "
            "records if they reuse outcomes."
        ),
        tags={RETRY_TAG: "true"},
    )
