"""A step: one planned operator, run over its inputs, and what Dagster is told of it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.assignments import Context
from dagster_dataops.assets.columns import column_metadata
from dagster_dataops.assets.configs import OperatorConfig, configured, resume_policy
from dagster_dataops.assets.error_rate import error_rate_results
from dagster_dataops.assets.external import ExternalFiles
from dagster_dataops.assets.metadata import report_metadata
from dagster_dataops.assets.partitions import loaded_parts, partitions_of, pattern_paths
from dagster_dataops.assets.patterns import PathPattern
from dagster_dataops.assets.plan import AssetPlan
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.retry_job import run_or_retry
from dagster_dataops.assets.several import Made, make_several
from dagster_dataops.assets.untold import all_told, begin_untold
from dagster_dataops.assets.upstream import Upstream
from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.execution.report import RunReport

StepEvent: TypeAlias = dg.MaterializeResult[Any] | dg.AssetCheckResult


def run_step(
    context: Context,
    plan: AssetPlan,
    config: OperatorConfig,
    dataops: DataOpsResource,
    loaded: Mapping[str, Any],
) -> Iterator[StepEvent]:
    """Run one operator and yield the events of it.

    In a run of several partitions it is run over one after the other.

    Args:
        context: Of the step.
        plan: What to run.
        config: From the launchpad.
        dataops: Where and how.
        loaded: What IO managers loaded, by argument.
    """
    partitions = partitions_of(context, plan.spec)
    reports: list[RunReport] = []

    def folder(partition: str | None) -> NodeFolder:
        return dataops.folder(plan.spec.key.path, partition)

    def make(partition: str | None) -> Made:
        inputs = [
            (key, _parts(context, plan.spec, given, loaded, partition))
            for key, given in plan.inputs
        ]
        made, report = _run(context, plan, config, dataops, inputs, partition)
        reports.append(report)
        return made

    def make_untold(partition: str) -> Made:
        begin_untold(folder(partition), context.run.run_id)
        return make(partition)

    def told(finished: Sequence[str | None]) -> None:
        all_told(folder(partition) for partition in finished)

    keys = [key for key in partitions if key is not None]
    if len(keys) > 1:
        yield from make_several(context, plan.spec, keys, make_untold, told)
    else:
        yield _result(plan.spec.key, make(partitions[0]))
        told(partitions)
    yield from error_rate_results(context, plan.spec.key, plan.error_rate, reports)


def _result(key: dg.AssetKey, made: Made) -> dg.MaterializeResult[Any]:
    return dg.MaterializeResult(
        asset_key=key,
        value=made.dataset,
        metadata=made.metadata,
        data_version=dg.DataVersion(made.dataset.fingerprint or ""),
        tags=made.tags,
    )


def _parts(
    context: Context,
    spec: dg.AssetSpec,
    given: str | Path | PathPattern,
    loaded: Mapping[str, Any],
    partition: str | None,
) -> list[object]:
    """Return an input of one partition: its datasets, or what they are made of, in order."""
    if isinstance(given, PathPattern):
        return pattern_paths(context, given, partition)
    if isinstance(given, Path):
        return [given]
    return loaded_parts(context, spec, given, loaded[given], partition)


def _run(
    context: Context,
    plan: AssetPlan,
    config: OperatorConfig,
    dataops: DataOpsResource,
    inputs: Sequence[tuple[dg.AssetKey, Sequence[object]]],
    partition: str | None,
) -> tuple[Made, RunReport]:
    operator = configured(plan.node.operator, config)
    folder = dataops.folder(plan.spec.key.path, partition)
    upstream = Upstream(folder, len(inputs))
    for key, parts in inputs:
        upstream.add(key, parts)
    files = ExternalFiles(plan.inputs)
    resume = resume_policy(config)
    report = run_or_retry(dataops, context, operator, upstream.datasets, folder, resume)
    invocation = operator.__dataops__
    columns = column_metadata(
        invocation.options, upstream.by_key, report.dataset, invocation.spec.kind
    )
    upstream.clean_up()
    metadata = {**report_metadata(report, partition), **columns}
    return Made(report.dataset, metadata, files.report(context, report.manifest.rows_in)), report
