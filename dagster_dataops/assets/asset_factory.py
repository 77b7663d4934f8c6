"""build_operator_assets: a pipeline as assets, in a step an operator or in one step for all."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.error_rate import ErrorRateCheck, ErrorRates
from dagster_dataops.assets.planning.asset_options import AssetOptions, Automation
from dagster_dataops.assets.planning.source_assets import Source
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.assets.pools import common_pool, pools_by_node
from dagster_dataops.assets.steps.operator_step import StepOptions, operator_step
from dagster_dataops.assets.steps.pipeline_step import pipeline_steps
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline, plan_pipeline
from dagster_dataops.assets.steps.stream_source import StreamSource
from dagster_dataops.pipelines.pipeline import Pipeline

Layout: TypeAlias = Literal["steps", "single_step"]


def build_operator_assets(  # noqa: PLR0913 - keywords, each documented
    ppl: Pipeline,
    *,
    source: Source,
    dagster_dataops_translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    layout: Layout = "steps",
    pools: Mapping[str, str] | None = None,
    partitions_def: dg.PartitionsDefinition | None = None,
    unpartitioned: Collection[str] = (),
    allow_missing_partitions: bool = False,
    backfill_policy: dg.BackfillPolicy | None = None,
    automation_condition: Automation | None = None,
    freshness_policy: dg.FreshnessPolicy | None = None,
    root: Path | None = None,
    max_error_rate: ErrorRates = ErrorRateCheck(),  # noqa: B008 - frozen
    stream_name: str = "",
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return one asset a node, each after those it depends on, and the source's if it is ours.

    The definitions they go into need the resources ``dataops`` (`DataOpsResource`) and
    ``dataops_io`` (`DataOpsIOManager`); `build_definitions` adds them.

    What the keywords mean is told by `build_definitions`, which takes them all but one: ``root`` is
    the folder of all results, if it is known before a run, and the assets then show where theirs
    is. It has no other effect: results go where the resource says.

    Raises:
        PipelineDefinitionError: An option names no node, or several pools for one step.
        ConfigurationError: A share of failed records is not in [0, 1].
    """
    options = AssetOptions(
        partitions_def=partitions_def,
        unpartitioned=unpartitioned,
        allow_missing_partitions=allow_missing_partitions,
        backfill_policy=backfill_policy,
        automation_condition=automation_condition,
        freshness_policy=freshness_policy,
        root=root,
        max_error_rate=max_error_rate,
        stream_name=stream_name,
        retry_policy=retry_policy,
    )
    planned = plan_pipeline(
        ppl, source=source, dagster_dataops_translator=dagster_dataops_translator, options=options
    )
    return lay_out(planned, layout, pools or {})


def lay_out(
    planned: PlannedPipeline, layout: Layout, pools: Mapping[str, str]
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the assets of a planned pipeline; arguments and errors as `build_operator_assets`."""
    options = StepOptions.of(planned.options)
    by_node = pools_by_node(planned.graph, pools)
    if layout == "single_step":
        pool = common_pool(planned.graph, by_node)
        assets = pipeline_steps(planned, planned.title, replace(options, pool=pool))
    else:
        assets = [
            operator_step(plan, replace(options, pool=by_node.get(plan.node.name)))
            for plan in planned.plans
        ]
    return [*_own_source(planned), *assets]


def _own_source(planned: PlannedPipeline) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    origin = planned.origin
    files = origin.files if isinstance(origin, StreamSource) else ()
    return [*([] if origin.definition is None else [origin.definition]), *files]
