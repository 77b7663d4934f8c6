"""run_step: run one planned operator over its inputs and yield its events."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dagster_dataops.assets.checks.error_rate import RunResult, error_rate_results
from dagster_dataops.assets.checks.missing_columns import missing_columns_results
from dagster_dataops.assets.inputs.artefact_inputs import folder_of_artefact, with_loaded
from dagster_dataops.assets.inputs.external_datasets import report_datasets
from dagster_dataops.assets.inputs.external_files import ExternalFiles
from dagster_dataops.assets.inputs.multi_partition import PartitionResult, materialize_all
from dagster_dataops.assets.inputs.partitions import loaded_parts, partitions_of, pattern_paths
from dagster_dataops.assets.inputs.path_pattern import PathPattern, SourceFile
from dagster_dataops.assets.inputs.source_files import source_file
from dagster_dataops.assets.inputs.step_inputs import StepInputs
from dagster_dataops.assets.launchpad.operator_config import (
    OperatorConfig,
    checked,
    limit_of,
    resume_policy,
)
from dagster_dataops.assets.metadata.columns.column_metadata import column_metadata
from dagster_dataops.assets.metadata.materialization import report_metadata
from dagster_dataops.assets.metadata.prompt_metadata import prompt_metadata
from dagster_dataops.assets.metadata.result_commands import view_metadata
from dagster_dataops.assets.metadata.training_metadata import training_metadata
from dagster_dataops.assets.planning.asset_plan import PARTITION, AssetPlan
from dagster_dataops.assets.runtime.observations import observe_tried, observe_waiting
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import (
    StepContext,
    StepEvent,
    describe_columns,
    retries_failed_records,
    run_of,
)
from dagster_dataops.assets.steps.column_warnings import warn_of_unknown
from dagster_dataops.assets.steps.preview_step import (
    earlier_preview,
    model_preview,
    observe_preview,
    preview_folder,
    run_preview,
)
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.checkpoints.resume.resume_policy import ChosenRecords, ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import RetryOutdatedError, RetryRefusedError, RunWaitingError
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.execution.runners.given_stream import of_partition
from dagster_dataops.operators.definition.operator import Operator, exporting
from dagster_dataops.pipelines.graph.operator_node import SOURCE


def run_step(
    context: StepContext,
    plan: AssetPlan,
    config: OperatorConfig,
    dataops: DataOpsResource,
    loaded: Mapping[str, Any],
) -> Iterator[StepEvent]:
    """Run one operator and yield its events.

    A preview, a try of the present code, or an operator that waits for the server, yields none and
    logs an observation.

    Several partitions are run one after another.
    """
    step = _OperatorRun(context, plan, config, dataops, loaded)
    partitions = partitions_of(context, plan.spec)
    if limit := limit_of(config.get("limit")):
        step.preview(partitions, limit)
        return
    if tried := limit_of(config.get("try"), "try"):
        step.try_records(partitions, tried)
        return
    try:
        yield from materialize_all(context, plan.specs, step.make)
    except RunWaitingError as waiting:
        observe_waiting(context, plan.specs, waiting)
        return
    for spec in plan.specs:
        failed = plan.error_rate_specs.get(spec.key)
        yield from error_rate_results(context, failed, plan.error_rate, step.results, partitions)
        missing = plan.missing_columns_specs.get(spec.key)
        yield from missing_columns_results(context, missing, step.results, partitions)


@dataclass
class _OperatorRun:
    """One operator in one step; attributes as the arguments of `run_step`.

    Attributes:
        results: The results of the runs, one for each partition, in order.
    """

    context: StepContext
    plan: AssetPlan
    config: OperatorConfig
    dataops: DataOpsResource
    loaded: Mapping[str, Any]
    results: list[RunResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._key = self.plan.spec.key.to_user_string()
        self._operator = checked(self._key, self.plan.node.operator, self.config)
        self._resume = resume_policy(self.config)

    def _folder(self, partition: str | None) -> NodeFolder:
        return self.plan.folder(self.dataops, partition)

    def _inputs(self, folder: NodeFolder) -> StepInputs:
        return StepInputs(folder, len(self.plan.inputs), run_of(self.context).run_id)

    def _parts(self, source: str | SourceFile, partition: str | None) -> Sequence[object]:
        """Return the parts of an input for one partition, as `StepInputs.add` takes them."""
        if isinstance(source, PathPattern) and partition is None:
            return pattern_paths(self.context, source, self.dataops)
        if not isinstance(source, str):
            return [source_file(source, partition, self.dataops)]
        spec = self.plan.spec
        return loaded_parts(self.context, spec, source, self.loaded[source], partition)

    def preview(self, partitions: Sequence[str | None], limit: int) -> None:
        """Preview the operator over the first records of its inputs."""
        context, dataops, plan = self.context, self.dataops, self.plan
        for partition in partitions:
            folder = self._folder(partition)
            with self._inputs(preview_folder(folder)) as upstream:
                for key, source in plan.inputs:
                    earlier = earlier_preview(context, dataops, key, partition)
                    upstream.add(
                        key, [earlier] if earlier is not None else self._parts(source, partition)
                    )
                operator = of_partition(self._previewing(partition), partition)
                asked = model_preview(dataops, operator, upstream.datasets, folder)
                report = run_preview(context, dataops, operator, upstream.datasets, folder, limit)
            for spec, result in zip(plan.specs, report.results.values(), strict=True):
                observe_preview(context, spec.key, result, limit, partition, asked)

    def _previewing(self, partition: str | None) -> Operator:
        """Return the operator with artefacts that this run previewed, or else published ones."""
        folders = {}
        for name, spec in self.plan.artefacts.items():
            folder = folder_of_artefact(self.dataops, spec, partition)
            earlier = earlier_preview(self.context, self.dataops, spec.key, partition)
            folders[name] = folder if earlier is None else NodeFolder.of_result(earlier)
        return self._with(folders)

    def _with(self, folders: Mapping[str, NodeFolder]) -> Operator:
        return with_loaded(self._key, self._operator, folders)

    def try_records(self, partitions: Sequence[str | None], records: int) -> None:
        """Try the present code on records that were processed before."""
        from dagster_dataops.models.tried_records import try_operator  # rare

        for partition in partitions:
            operator = of_partition(self._with(self._artefacts(partition)), partition)
            folder = self._folder(partition)
            tried = try_operator(folder, operator, records, self.dataops.clients)
            for spec in self.plan.specs:
                observe_tried(self.context, spec.key, tried, partition)

    def _artefacts(self, partition: str | None) -> dict[str, NodeFolder]:
        """Return the folders of the published artefacts that the operator reads."""
        return {
            name: folder_of_artefact(self.dataops, spec, partition)
            for name, spec in self.plan.artefacts.items()
        }

    def make(self, partition: str | None) -> list[PartitionResult]:
        """Make the results of one partition, or of an operator without partitions."""
        folder = self._folder(partition)
        with self._inputs(folder) as upstream:
            for key, source in self.plan.inputs:
                upstream.add(key, self._parts(source, partition))
            return self._made_of(upstream, folder, partition)

    def _made_of(
        self, upstream: StepInputs, folder: NodeFolder, partition: str | None
    ) -> list[PartitionResult]:
        texts = partial(self.plan.columns.texts, SOURCE, None)
        files = ExternalFiles(self.plan.inputs, self.dataops, texts)
        operator = of_partition(self._with(self._artefacts(partition)), partition)
        output = operator.__dataops__.output
        if output is not None and partition is not None:
            operator = exporting(operator, _export_of(operator, output, folder))
        report = run_or_retry(
            self.dataops, self.context, operator, upstream.datasets, folder, self._resume
        )
        self.results.append((report.manifest, report.error_path))
        tags = files.report(self.context, report.manifest.rows_in)
        tags |= report_datasets(self.context, operator)
        results = zip(self.plan.results, report.results.values(), strict=True)
        return [
            PartitionResult(result.dataset, self._metadata(name, result, upstream, partition), tags)
            for name, result in results
        ]

    def _metadata(
        self, name: str, report: RunReport, upstream: StepInputs, partition: str | None
    ) -> dict[str, Any]:
        plan, dataset = self.plan, report.dataset
        texts = plan.columns.texts(name, self._operator)
        describe_columns(self.context, plan.results[name].key, texts)
        columns = column_metadata(self._operator, upstream.by_key, dataset, texts)
        warn_of_unknown(self.context, self.dataops, plan, name, dataset, partition)
        prompt = prompt_metadata(self._operator, upstream.datasets)
        trained = training_metadata(self._operator, dataset, report.manifest.counts)
        shown = view_metadata(self.dataops.view_of(report.folder))
        return {**report_metadata(report, partition), **shown, **columns, **prompt, **trained}


def _export_of(operator: Operator, output: Path, folder: NodeFolder) -> Path:
    """Return the path that a partition is exported to; the folder of several results."""
    if operator.__dataops__.spec.kind.exports:
        return Path(str(output).replace(PARTITION, folder.path.name))
    if folder.outputs:
        return output / folder.path.name
    return output / folder.name / f"{folder.path.name}.jsonl"


def run_or_retry(
    dataops: DataOpsResource,
    context: StepContext,
    operator: Operator,
    inputs: Sequence[JsonlDataset],
    folder: NodeFolder,
    resume: ResumePolicy | ChosenRecords,
) -> RunReport:
    """Run an operator; in the retry job, retry its failed records.

    A resume policy other than ``auto`` in the launchpad takes precedence over the retry job.

    Raises:
        RetryRefusedError: The failed records cannot be retried alone, because the result was edited
            or belongs to another operator. If the input has changed, all records are processed.
        DataOpsError: As for `DataOpsResource.run_operator`.
    """
    if not retries_failed_records(context) or resume is not ResumePolicy.AUTO:
        return dataops.run_operator(context, operator, inputs, folder, resume)
    try:
        return dataops.run_operator(context, operator, inputs, folder, ResumePolicy.FAILED_RECORDS)
    except RetryRefusedError as refused:
        whole = operator.__dataops__.spec.kind.as_a_whole
        if not whole and not isinstance(refused, RetryOutdatedError):
            raise
        text = f"{folder.name}: processing all records, because {refused.reason}"
        context.log.info(text)
    return dataops.run_operator(context, operator, inputs, folder, ResumePolicy.AUTO)
