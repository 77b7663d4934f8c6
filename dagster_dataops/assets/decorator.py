"""dataops_assets: a pipeline's assets in one step whose body is the user's."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dagster as dg

from dagster_dataops.assets.checks.error_rate import ErrorRateCheck, ErrorRates
from dagster_dataops.assets.planning.asset_options import AssetOptions
from dagster_dataops.assets.planning.source_assets import Source
from dagster_dataops.assets.planning.translator import DataOpsTranslator
from dagster_dataops.assets.steps.operator_step import StepOptions
from dagster_dataops.assets.steps.pipeline_step import Body, pipeline_step
from dagster_dataops.assets.steps.planned_pipeline import plan_pipeline
from dagster_dataops.assets.steps.stream_source import StreamSource
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.pipelines.pipeline import Pipeline


def dataops_assets(  # noqa: PLR0913 - what Dagster users set of a step
    ppl: Pipeline,
    *,
    source: Source,
    name: str | None = None,
    partitions_def: dg.PartitionsDefinition[str] | None = None,
    backfill_policy: dg.BackfillPolicy | None = None,
    op_tags: Mapping[str, Any] | None = None,
    retry_policy: dg.RetryPolicy | None = None,
    pool: str | None = None,
    dagster_dataops_translator: DataOpsTranslator | None = None,
    max_error_rate: ErrorRates = ErrorRateCheck(),  # noqa: B008 - frozen
    stream_name: str = "",
) -> Callable[[Body], dg.AssetsDefinition]:
    """Make a function the step that materializes every node of a pipeline, or those selected.

    The definitions need the resources of `dataops_resources`.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`; the asset of a source function of its own is not
            among these assets, so that a function is refused here. A stream is one of them.
        name: Of the op; by default the function's.
        partitions_def: Of all nodes whose translator gives them none.
        backfill_policy: How many partitions a run may have.
        op_tags: Tags of the op.
        retry_policy: After a failure; finished operators are not run again by a retry.
        pool: Concurrency pool that the step is in.
        dagster_dataops_translator: Keys, groups and descriptions.
        max_error_rate: As for `build_definitions`.
        stream_name: As for `build_definitions`.

    Example:
        .. code-block:: python

            @dataops_assets(ppl, source="docs.jsonl", pool="llm")
            def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource):
                yield from dataops.run(context).fetch_column_metadata()

    Raises:
        PipelineDefinitionError: The source is a function.
    """
    options = AssetOptions(max_error_rate=max_error_rate, stream_name=stream_name)
    planned = plan_pipeline(
        ppl, source=source, dagster_dataops_translator=dagster_dataops_translator, options=options
    )
    streamed = isinstance(planned.origin, StreamSource)
    if planned.origin.function is not None and not (streamed and partitions_def is None):
        reason = (
            f"its source is the function {planned.origin.key.path[-1]!r}, which is an asset of its "
            "own; use build_definitions, or make it an asset and pass that as the source"
        )
        raise PipelineDefinitionError(ppl.graph.name, reason)
    own = [planned.origin.plan] if isinstance(planned.origin, StreamSource) else []
    plans = [
        replace(plan, spec=_partitioned(plan.spec, partitions_def))
        for plan in [*own, *planned.plans]
    ]
    step = StepOptions(
        retry_policy=retry_policy, pool=pool, op_tags=op_tags, backfill_policy=backfill_policy
    )

    def decorate(body: Body) -> dg.AssetsDefinition:
        return pipeline_step(body, plans, name or str(body.__name__), step)

    return decorate


def build_operator_asset_specs(
    ppl: Pipeline, *, source: Source, dagster_dataops_translator: DataOpsTranslator | None = None
) -> list[dg.AssetSpec]:
    """Return the spec of every node, each after those it depends on: what `dataops_assets` makes.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`.
        dagster_dataops_translator: Keys, groups and descriptions.
    """
    return plan_pipeline(
        ppl, source=source, dagster_dataops_translator=dagster_dataops_translator
    ).specs


def _partitioned(
    spec: dg.AssetSpec, partitions_def: dg.PartitionsDefinition[str] | None
) -> dg.AssetSpec:
    if partitions_def is None or spec.partitions_def is not None:
        return spec
    return spec.replace_attributes(partitions_def=partitions_def)
