"""run_step: run one planned operator over its inputs and yield its events."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dagster_dataops.assets.checks.error_rate import RunResult, error_rate_results
from dagster_dataops.assets.inputs.external_files import ExternalFiles
from dagster_dataops.assets.inputs.multi_partition import PartitionResult, materialize_all
from dagster_dataops.assets.inputs.partitions import loaded_parts, partitions_of, pattern_paths
from dagster_dataops.assets.inputs.path_pattern import PathPattern
from dagster_dataops.assets.inputs.step_inputs import StepInputs
from dagster_dataops.assets.launchpad.operator_config import (
    OperatorConfig,
    checked,
    limit_of,
    resume_policy,
)
from dagster_dataops.assets.metadata.column_metadata import column_metadata
from dagster_dataops.assets.metadata.materialization import report_metadata
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, StepEvent
from dagster_dataops.assets.steps.preview_step import (
    earlier_preview,
    observe_preview,
    preview_folder,
    run_preview,
)
from dagster_dataops.assets.steps.retry_step import run_or_retry
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.execution.runners.given_stream import of_partition
from dagster_dataops.operators.operator import exporting


def run_step(
    context: StepContext,
    plan: AssetPlan,
    config: OperatorConfig,
    dataops: DataOpsResource,
    loaded: Mapping[str, Any],
) -> Iterator[StepEvent]:
    """Run one operator and yield its events; a preview yields none and logs an observation.

    Several partitions are run one after another.

    Args:
        context: The context of the step.
        plan: The plan of the operator.
        config: The operator's config from the launchpad.
        dataops: The resource.
        loaded: Inputs that IO managers loaded, by argument.
    """
    step = _OperatorRun(context, plan, config, dataops, loaded)
    if limit := limit_of(config.limit):
        step.preview(partitions_of(context, plan.spec), limit)
        return
    yield from materialize_all(context, plan.specs, step.make)
    for spec in plan.specs:
        yield from error_rate_results(context, spec.key, plan.error_rate, step.results)


class _OperatorRun:
    """One operator in one step; arguments as `run_step`.

    Attributes:
        results: The results of the runs, one for each partition, in order.
    """

    def __init__(
        self,
        context: StepContext,
        plan: AssetPlan,
        config: OperatorConfig,
        dataops: DataOpsResource,
        loaded: Mapping[str, Any],
    ) -> None:
        self._context = context
        self._plan = plan
        self._dataops = dataops
        self._loaded = loaded
        self._resume = resume_policy(config)
        self.results: list[RunResult] = []
        key = plan.spec.key.to_user_string()
        self._operator = checked(key, plan.node.operator, config)

    def _folder(self, partition: str | None) -> NodeFolder:
        return self._plan.folder(self._dataops, partition)

    def _parts(self, given: str | Path | PathPattern, partition: str | None) -> Sequence[object]:
        """Return the parts of an input for one partition, as for `StepInputs.add`."""
        if isinstance(given, PathPattern):
            return pattern_paths(self._context, given, partition)
        if isinstance(given, Path):
            return [given]
        spec = self._plan.spec
        return loaded_parts(self._context, spec, given, self._loaded[given], partition)

    def preview(self, partitions: Sequence[str | None], limit: int) -> None:
        """Preview the operator over the first records of its inputs."""
        context, dataops, plan = self._context, self._dataops, self._plan
        for partition in partitions:
            folder = self._folder(partition)
            place, run = preview_folder(folder), context.run.run_id
            with StepInputs(place, len(plan.inputs), run) as upstream:
                for key, given in plan.inputs:
                    earlier = earlier_preview(context, dataops, key, partition)
                    upstream.add(
                        key, [earlier] if earlier is not None else self._parts(given, partition)
                    )
                operator = of_partition(self._operator, partition)
                report = run_preview(context, dataops, operator, upstream.datasets, folder, limit)
            for spec, one in zip(plan.specs, report.results.values(), strict=True):
                observe_preview(context, spec.key, one, limit, partition)

    def make(self, partition: str | None) -> list[PartitionResult]:
        """Make the results of one partition, or of an operator without partitions."""
        with StepInputs(
            self._folder(partition), len(self._plan.inputs), self._context.run.run_id
        ) as upstream:
            for key, given in self._plan.inputs:
                upstream.add(key, self._parts(given, partition))
            return self._made_of(upstream, partition)

    def _made_of(self, upstream: StepInputs, partition: str | None) -> list[PartitionResult]:
        files = ExternalFiles(self._plan.inputs)
        folder = self._folder(partition)
        operator = of_partition(self._operator, partition)
        output = operator.__dataops__.output
        if output is not None and partition is not None:
            operator = exporting(operator, _export_of(output, folder))
        report = run_or_retry(
            self._dataops, self._context, operator, upstream.datasets, folder, self._resume
        )
        self.results.append((report.manifest, report.error_path))
        tags = files.report(self._context, report.manifest.rows_in)
        return [
            PartitionResult(one.dataset, self._metadata(one, upstream, partition), tags)
            for one in report.results.values()
        ]

    def _metadata(
        self, report: RunReport, upstream: StepInputs, partition: str | None
    ) -> dict[str, Any]:
        invocation = self._operator.__dataops__
        columns = column_metadata(
            invocation.options, upstream.by_key, report.dataset, invocation.spec.kind
        )
        return {**report_metadata(report, partition), **columns}


def _export_of(output: Path, folder: NodeFolder) -> Path:
    """Return the file that a partition is exported to; the folder of several results."""
    if folder.outputs:
        return output / folder.path.name
    return output / folder.name / f"{folder.path.name}.jsonl"
