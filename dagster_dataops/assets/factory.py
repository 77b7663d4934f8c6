"""build_operator_assets: a pipeline as assets, in a step an operator or in one step for all."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import dagster as dg

from dagster_dataops.assets.error_rate import ErrorRateCheck, ErrorRates
from dagster_dataops.assets.operator_step import StepOptions, operator_step
from dagster_dataops.assets.pipeline_plan import PlannedPipeline, plan_pipeline
from dagster_dataops.assets.pipeline_step import pipeline_steps
from dagster_dataops.assets.pools import common_pool, pools_by_node
from dagster_dataops.assets.sources import Source
from dagster_dataops.assets.translator import DataOpsTranslator
from dagster_dataops.services.pipeline import Pipeline

Layout: TypeAlias = Literal["steps", "single_step"]


def build_operator_assets(  # noqa: PLR0913 - all there is to say, by name
    ppl: Pipeline,
    *,
    source: Source,
    translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    layout: Layout = "steps",
    pools: Mapping[str, str] | None = None,
    max_error_rate: ErrorRates = ErrorRateCheck(),  # noqa: B008 - frozen
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return one asset a node, each after those it depends on, and the source's if it is ours.

    The definitions they go into need the resources ``dataops`` (`DataOpsResource`) and
    ``dataops_io`` (`DataOpsIOManager`); `build_definitions` adds them.

    Args:
        ppl: A complete pipeline.
        source: Where its records come from: the path of a jsonl file, a function that yields
            dicts, or an upstream asset, whatever IO manager stores it: a list of dicts or a
            DataFrame serves as well as a handle of ours.
        translator: Keys, groups and descriptions.
        retry_policy: Of every step; a retry goes on where the attempt stopped.
        layout: ``steps`` gives every operator a step of its own, which an executor may run beside
            others or elsewhere. ``single_step`` runs the selected operators one after the other
            in one step, each materialized as it finishes: it saves the start of a process a step
            where the executor starts any. Keys, specs, bytes and metadata are the same.
        pools: Dagster concurrency pools by node, such as ``{"answers": "llm"}``: where a pool has
            a limit, no more of its steps run at a time in the whole deployment. In ``single_step``
            the one step is in the one pool that is named.
        max_error_rate: Which share of an operator's records may fail before its check
            ``failed_records`` does not pass: a number in [0, 1], an `ErrorRateCheck`, or either of
            them by node. By default any failed record is a warning. ``None``: no such check.

    Raises:
        PipelineDefinitionError: ``pools`` or ``max_error_rate`` names no node, or several pools
            are for one step.
        ConfigurationError: A share of failed records is not in [0, 1].
    """
    planned = plan_pipeline(
        ppl, source=source, dataops_translator=translator, max_error_rate=max_error_rate
    )
    by_node = pools_by_node(ppl.graph, pools or {})
    if layout == "single_step":
        pool = common_pool(ppl.graph, by_node)
        options = StepOptions(retry_policy=retry_policy, pool=pool)
        assets = pipeline_steps(planned, _step_name(ppl), options)
    else:
        assets = [
            operator_step(
                plan, StepOptions(retry_policy=retry_policy, pool=by_node.get(plan.node.name))
            )
            for plan in planned.plans
        ]
    return [*_own_source(planned), *assets]


def _step_name(ppl: Pipeline) -> str:
    return ppl.graph.name or "dataops"


def _own_source(planned: PlannedPipeline) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    definition = planned.origin.definition
    return [] if definition is None else [definition]
