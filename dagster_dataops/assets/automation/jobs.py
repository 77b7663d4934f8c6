"""Jobs of a pipeline: one for all assets, or two if only some of the assets are partitioned."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import dagster as dg

# Dagster exports no name for the result of define_asset_job.
AssetJob: TypeAlias = Any


def pipeline_jobs(
    name: str,
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
    source_checks: Sequence[dg.AssetCheckKey] = (),
    **keywords: Any,
) -> list[AssetJob]:
    """Return the jobs that materialize a pipeline; the job of partitioned assets is the first.

    Unpartitioned assets of a partitioned pipeline have their own job. In a run of one partition
    they would find the other partitions missing, or they would be materialized once per partition.

    Args:
        name: Name of the first job.
        assets: Assets of the pipeline, or some of them, with their checks.
        source_checks: Checks of the source that the first job also runs.
        keywords: Further arguments of ``dg.define_asset_job``.
    """
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
