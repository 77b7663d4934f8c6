"""A step: one planned operator, run over its inputs, and what Dagster is told of it."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.assignments import Context
from dagster_dataops.assets.configs import OperatorConfig, configured, resume_policy
from dagster_dataops.assets.error_rate import error_rate_results
from dagster_dataops.assets.lineage import lineage_metadata
from dagster_dataops.assets.metadata import report_metadata
from dagster_dataops.assets.plan import AssetPlan
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.retry_job import run_or_retry
from dagster_dataops.assets.upstream import Upstream
from dagster_dataops.datasets.dataset import JsonlDataset

StepEvent: TypeAlias = dg.MaterializeResult[JsonlDataset] | dg.AssetCheckResult


def run_step(
    context: Context,
    plan: AssetPlan,
    config: OperatorConfig,
    dataops: DataOpsResource,
    loaded: Mapping[str, Any],
) -> Iterator[StepEvent]:
    """Run one operator and yield the events of it.

    Args:
        context: Of the step.
        plan: What to run.
        config: From the launchpad.
        dataops: Where and how.
        loaded: What IO managers loaded, by argument.
    """
    operator = configured(plan.node.operator, config)
    folder = dataops.folder(plan.spec.key.path, _partition_of(context))
    upstream = Upstream(folder)
    for key, given in plan.inputs:
        upstream.add(key, loaded[given] if isinstance(given, str) else given)
    resume = resume_policy(config)
    report = run_or_retry(dataops, context, operator, upstream.datasets, folder, resume)
    options = operator.__dataops__.options
    lineage = lineage_metadata(options, upstream.by_key, report.dataset)
    upstream.clean_up()
    yield dg.MaterializeResult(
        asset_key=plan.spec.key,
        value=report.dataset,
        metadata={**report_metadata(report), **lineage},
        data_version=dg.DataVersion(report.manifest.fingerprint),
    )
    yield from error_rate_results(context, plan.spec.key, plan.error_rate, [report])


def _partition_of(context: Context) -> str | None:
    if context.has_partition_key:
        return str(context.partition_key)
    if context.has_partition_key_range:
        text = "an operator works on one partition a run; backfill with a run for each of them"
        raise dg.Failure(text, allow_retries=False)
    return None
