"""build_operator_assets: a pipeline as assets, one a node."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from dagster_dataops.assets.configs import config_type_of
from dagster_dataops.assets.plan import AssetPlan, plan_assets
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.sources import IO_MANAGER, Source, source_asset
from dagster_dataops.assets.step import StepEvent, run_step
from dagster_dataops.assets.translator import DataOpsTranslator
from dagster_dataops.services.pipeline import Pipeline


def build_operator_assets(
    ppl: Pipeline,
    *,
    source: Source,
    translator: DataOpsTranslator | None = None,
    retry_policy: dg.RetryPolicy | None = None,
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
        retry_policy: Of every operator's step; a retry goes on where the attempt stopped.
    """
    graph = ppl.graph
    origin = source_asset(source, graph.name)
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = []
    if origin.definition is not None:
        assets.append(origin.definition)
    plans = plan_assets(graph, origin, translator or DataOpsTranslator())
    return [*assets, *(_operator_asset(plan, retry_policy) for plan in plans)]


def _operator_asset(plan: AssetPlan, retry_policy: dg.RetryPolicy | None) -> dg.AssetsDefinition:
    config_type, spec = config_type_of(plan.node), plan.spec

    @dg.asset(
        key=spec.key,
        ins=plan.ins,
        deps=plan.deps,
        description=spec.description,
        metadata=spec.metadata,
        group_name=spec.group_name,
        code_version=spec.code_version,
        owners=spec.owners,
        tags=spec.tags,
        automation_condition=spec.automation_condition,
        freshness_policy=spec.freshness_policy,
        partitions_def=spec.partitions_def,
        io_manager_key=IO_MANAGER,
        retry_policy=retry_policy,
        output_required=False,  # a preview materializes nothing
    )
    def _materialize(
        context: dg.AssetExecutionContext,
        config: config_type,  # type: ignore[valid-type]
        dataops: DataOpsResource,
        **loaded: Any,
    ) -> Iterator[StepEvent]:
        yield from run_step(context, plan, config, dataops, loaded)

    return _materialize
