"""estimate_job: a job that estimates the cost of a pipeline's calls of models."""

import sys
from collections.abc import Mapping
from typing import Final

import dagster as dg

from dagster_dataops.assets.automation.preview_source import PreviewSource
from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import (
    ESTIMATE_CALLS,
    ESTIMATE_COST,
    ESTIMATE_COST_AT_MOST,
    ESTIMATE_TABLE,
)
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource, resource_of
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.assets.steps.source_assets import Source
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, load_result
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.dry_run import Estimate, calls_models, estimates_of

_SAMPLE: Final = 200
_SAMPLE_TEXT: Final = "Number of records from which the estimate is made. No model is called."


def estimate_jobs(
    planned: PlannedPipeline, source: Source, tags: Mapping[str, str] | None = None
) -> list[dg.JobDefinition]:
    """Return the job ``<pipeline>_estimate``; none if no node calls models.

    It shows calls, tokens and cost of each such node as an observation of its asset, and in the
    log.
    """
    if not calls_models(planned.graph):
        return []
    first = PreviewSource.of(planned, source)
    title = planned.title
    sample_field = dg.Field(int, default_value=_SAMPLE, description=_SAMPLE_TEXT)

    @dg.op(
        name=f"estimate_{title}",
        description=f"Estimates the calls of models of {title}. No model is called.",
        config_schema={"sample": sample_field, **first.fields()},
        required_resource_keys={planned.resource_key},
    )
    def _estimate(context: dg.OpExecutionContext) -> None:
        dataops = resource_of(context, planned.resource_key)
        partition = first.partition(context, dataops)
        sample = context.op_config["sample"]
        data = _records(first, context, dataops, partition)
        plans = {plan.node.name: plan for plan in planned.plans}

        def folder(name: str) -> NodeFolder:
            plan = plans[name]
            return plan.folder(dataops, None if plan.spec.partitions_def is None else partition)

        estimates = estimates_of(planned.graph, data, sample, dataops.clients, folder)
        for name, estimate in estimates.items():
            _show(context, plans[name], estimate, partition)
        total = sum(estimate.cost.expected for estimate in estimates.values())
        high = sum(estimate.cost.high for estimate in estimates.values())
        said = f"{title}: ${total:,.4f} expected, ${high:,.4f} at most"
        context.log.info(said)

    job = dg.GraphDefinition(
        name=f"{title}_estimate",
        description="Calls, tokens and cost of every node that calls models, estimated from a "
        "sample of the source. No model is called, and nothing is materialized.",
        node_defs=[_estimate],
    )
    return [job.to_job(executor_def=dg.in_process_executor, tags=tags)]


def _records(
    first: PreviewSource,
    context: dg.OpExecutionContext,
    dataops: DataOpsResource,
    partition: str | None,
) -> object:
    """Return all records of the source; of its last materialization if there is one."""
    written = dataops.folder(first.origin.key.path, partition)
    if (
        isinstance(first.origin.definition, dg.AssetsDefinition)
        and written.as_published().result.exists()
    ):
        return load_result(written)
    return first.records(context, dataops, sys.maxsize, partition)


def _show(
    context: dg.OpExecutionContext, plan: AssetPlan, estimate: Estimate, partition: str | None
) -> None:
    """Log an estimate, and observe it on the first asset of its node."""
    cost, tokens = estimate.cost, estimate.tokens_out
    rows = [
        ["calls", f"{estimate.calls:,}", f"{estimate.calls:,}"],
        ["tokens in", f"{estimate.tokens_in:,}", f"{estimate.tokens_in:,}"],
        ["tokens out", f"{tokens.expected:,.0f}", f"{tokens.high:,.0f}"],
        ["cost", f"${cost.expected:,.4f}", f"${cost.high:,.4f}"],
    ]
    spec = next(iter(plan.results.values()))
    context.log_event(
        dg.AssetObservation(
            asset_key=spec.key,
            description=f"{counted(estimate.calls, 'calls')}, ${cost.expected:,.4f} expected. "
            "An estimate; no model was called.",
            metadata={
                ESTIMATE_TABLE: dg.MetadataValue.md(table(["", "expected", "at most"], rows)),
                ESTIMATE_COST: round(cost.expected, 6),
                ESTIMATE_COST_AT_MOST: round(cost.high, 6),
                ESTIMATE_CALLS: estimate.calls,
            },
            partition=None if spec.partitions_def is None else partition,
        )
    )
    said = (
        f"{spec.key.to_user_string()}: {counted(estimate.calls, 'calls')}, "
        f"{estimate.tokens_in:,} tokens in, {tokens.expected:,.0f} tokens out expected and "
        f"{tokens.high:,.0f} at most: ${cost.expected:,.4f} expected, ${cost.high:,.4f} at most"
    )
    context.log.info(said)
