"""dataops_assets: the assets of a pipeline in one step with a body written by the user."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Unpack

import dagster as dg

from dagster_dataops.assets.planning.asset_options import AssetOptions
from dagster_dataops.assets.planning.option_keywords import takes_options
from dagster_dataops.assets.steps.operator_step import StepOptions
from dagster_dataops.assets.steps.pipeline_step import pipeline_step
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline, planned_pipeline
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.assets.steps.step_body import Body
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.pipelines.pipeline import Pipeline


@takes_options(AssetOptions)
def dataops_assets(
    ppl: Pipeline,
    *,
    source: Source,
    name: str | None = None,
    op_tags: Mapping[str, Any] | None = None,
    pool: str | None = None,
    **options: Unpack[AssetOptions],
) -> Callable[[Body], dg.AssetsDefinition]:
    """Return a decorator: the function becomes the step that materializes every node.

    The definitions need the resources of `dataops_resources`.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`, except a function that yields dicts, because its
            asset needs a separate step. The asset of a stream is in this step.
        name: Name of the op; by default the function's.
        op_tags: Tags of the op.
        pool: Concurrency pool of the step.
        **options: See `AssetOptions`.

    Example:
        .. code-block:: python

            @dataops_assets(ppl, source="docs.jsonl", pool="llm")
            def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource):
                yield from dataops.run(context).fetch_column_metadata()

    Raises:
        PipelineDefinitionError: The source is a function that yields dicts, or the nodes have
            different partitions, but one step has one kind of partitions.
    """
    planned = planned_pipeline(ppl, source, options)
    origin = planned.origin
    plans = planned.plans if origin.plan is None else [origin.plan, *planned.plans]
    _check_source(planned)
    _check_partitions(planned)
    step = replace(StepOptions.of(options), pool=pool, op_tags=op_tags)

    def decorate(body: Body) -> dg.AssetsDefinition:
        return pipeline_step(body, plans, name or str(body.__name__), step)

    return decorate


@takes_options(AssetOptions)
def build_operator_asset_specs(
    ppl: Pipeline, *, source: Source, **options: Unpack[AssetOptions]
) -> list[dg.AssetSpec]:
    """Return the asset spec of every node, each after its inputs, as in `dataops_assets`.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`.
        **options: See `AssetOptions`.
    """
    return planned_pipeline(ppl, source, options).specs


def _check_source(planned: PlannedPipeline) -> None:
    origin = planned.origin
    if origin.function is None:
        return
    if origin.plan is not None and planned.options.get("partitions_def") is None:
        return
    reason = (
        f"its source is the function {origin.key.path[-1]!r}, which needs a separate step; "
        "use build_definitions, or make it an asset and pass that as the source"
    )
    raise PipelineDefinitionError(planned.graph.name, reason)


def _check_partitions(planned: PlannedPipeline) -> None:
    first, *others = planned.plans
    for plan in others:
        if plan.spec.partitions_def != first.spec.partitions_def:
            reason = (
                f"nodes {first.node.name!r} and {plan.node.name!r} have different partitions, and "
                "one step cannot have both; use build_definitions or build_operator_assets"
            )
            raise PipelineDefinitionError(planned.graph.name, reason)
