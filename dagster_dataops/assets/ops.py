"""A pipeline as a job of ops, without assets."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.inputs.artefact_inputs import with_loaded
from dagster_dataops.assets.inputs.source_results import source_result
from dagster_dataops.assets.launchpad.config_schema import config_field
from dagster_dataops.assets.launchpad.operator_config import checked, resume_policy
from dagster_dataops.assets.metadata.columns.column_metadata import column_metadata
from dagster_dataops.assets.metadata.materialization import dataset_metadata, report_metadata
from dagster_dataops.assets.metadata.metadata_keys import COLUMN_LINEAGE
from dagster_dataops.assets.metadata.result_commands import view_metadata
from dagster_dataops.assets.planning.asset_plan import AssetPlan, argument_of
from dagster_dataops.assets.planning.descriptions import described
from dagster_dataops.assets.planning.translator import description_of
from dagster_dataops.assets.runtime.asset_paths import key_of
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.preview_step import limit_over, run_preview
from dagster_dataops.assets.steps.source_assets import function_name, source_asset
from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from dagster_dataops.execution.runners.given_stream import Streamed
from dagster_dataops.foundation.places.url_forms import ObjectUrl
from dagster_dataops.pipelines.combined_inputs import Combined
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode
from dagster_dataops.pipelines.graph.source_check import with_source
from dagster_dataops.pipelines.pipeline import Pipeline
from dagster_dataops.streams.operations import Operations

JobSource: TypeAlias = (
    str
    | os.PathLike[str]
    | Callable[[], Iterable[dict[str, Any]] | Operations]
    | Operations
    | Streamed
    | Combined
)


def build_operator_ops(ppl: Pipeline) -> dict[str, dg.OpDefinition]:
    """Return one op a node, by node name; inputs and output are `JsonlDataset` handles.

    The output of an artefact is the listing of its files. It is the input ``artefact_<node>`` of
    the nodes that take it as an option.
    """
    graph = with_source(ppl.graph)
    return {node.name: _operator_op(graph.name, node) for node in graph.ordered()}


def build_operator_job(
    ppl: Pipeline,
    *,
    source: JobSource,
    name: str = "",
    resources: Mapping[str, Any] | None = None,
    stream_name: str = "",
) -> dg.JobDefinition:
    """Return a job that runs the whole pipeline, with one step for each node.

    Args:
        ppl: A complete pipeline.
        source: Path of a jsonl file, a function that yields dicts, or a stream.
        name: Name of the job; by default the pipeline's name followed by ``_job``.
        resources: Resources of the job. ``dataops`` is required, unless the definitions that
            contain the job provide it.
        stream_name: As for `build_definitions`.
    """
    graph = ppl.graph
    ops = build_operator_ops(ppl)
    origin = _source_op(graph.name, source, stream_name)
    dependencies: dict[str, dict[str, dg.DependencyDefinition]] = {}
    for node in graph.ordered():
        dependencies[node.name] = {
            argument_of(upstream): _made_by(upstream, origin.name) for upstream in node.inputs
        } | {f"artefact_{name}": dg.DependencyDefinition(name) for name in node.artefacts}
    definition = dg.GraphDefinition(
        name=name or f"{graph.name or 'dataops'}_job",
        node_defs=[origin, *ops.values()],
        dependencies=dependencies,
    )
    return definition.to_job(resource_defs=resources, executor_def=dg.in_process_executor)


def _made_by(result: str, source: str) -> dg.DependencyDefinition:
    """Return the op, and its output if it has several, that makes an input of another op."""
    node, _, output = result.partition(".")
    op = source if node == SOURCE else node
    return dg.DependencyDefinition(op, output) if output else dg.DependencyDefinition(op)


def _operator_op(pipeline: str, node: OperatorNode) -> dg.OpDefinition:
    spec = node.operator.__dataops__.spec

    @dg.op(
        name=node.name,
        description=description_of(spec),
        ins={
            **{argument_of(upstream): dg.In() for upstream in node.inputs},
            **{f"artefact_{name}": dg.In() for name in node.artefacts},
        },
        out={output: dg.Out(JsonlDataset) for output in spec.outputs} or dg.Out(JsonlDataset),
        config_schema=config_field(node.operator),
        code_version=spec.code_version[:12],
    )
    def _run(
        context: dg.OpExecutionContext,
        dataops: DataOpsResource,
        **inputs: Any,
    ) -> Iterator[dg.Output[JsonlDataset]]:
        config = context.op_config
        listings = {name: inputs[f"artefact_{name}"] for name in node.artefacts}
        root = dataops.results_root
        folders = {name: NodeFolder.at(root.at(listing.path)) for name, listing in listings.items()}
        operator = with_loaded(node.name, checked(node.name, node.operator, config), folders)
        datasets = [inputs[argument_of(upstream)] for upstream in node.inputs]
        folder = dataops.folder(key_of(pipeline, node.name)).with_outputs(spec.outputs)
        if tried := config.get("try"):
            allowed = "empty for an op, which returns a result; use the asset or the command try"
            raise ConfigurationError("try", tried, allowed)
        if limit := limit_over([*datasets, *listings.values()], config.get("limit")):
            report = run_preview(context, dataops, operator, datasets, folder, limit)
        else:
            report = dataops.run_operator(
                context, operator, datasets, folder, resume_policy(config)
            )
        keys = [dg.AssetKey(key_of(pipeline, name)) for name in node.inputs]
        upstream = list(zip(keys, datasets, strict=True))
        for output, output_report in (report.outputs or {"result": report}).items():
            columns = column_metadata(operator, upstream, output_report.dataset)
            columns.pop(COLUMN_LINEAGE, None)  # ops have no asset keys
            shown = view_metadata(dataops.view_of(output_report.folder))
            metadata = {**report_metadata(output_report), **shown, **columns}
            yield dg.Output(output_report.dataset, output_name=output, metadata=metadata)

    return _run


def _source_op(pipeline: str, source: JobSource, stream_name: str) -> dg.OpDefinition:
    origin = source_asset(source, pipeline, {"stream_name": stream_name})
    if origin.plan is not None:
        return _stream_op(origin.plan)
    if isinstance(source, (str, os.PathLike)):
        return _file_op(source)
    if not inspect.isfunction(source):
        reason = "the source of a job of ops must be a path, a function or a stream, not an asset"
        raise PipelineDefinitionError(pipeline, reason)
    name = function_name(source)

    @dg.op(name=name, description=described(source.__doc__))
    def _source(context: dg.OpExecutionContext, dataops: DataOpsResource) -> JsonlDataset:
        folder = dataops.folder(key_of(pipeline, name))
        result = source_result(context, dataops, source, folder)
        context.add_output_metadata(result.metadata)
        return result.dataset

    return _source


def _stream_op(plan: AssetPlan) -> dg.OpDefinition:
    if plan.ins:
        reason = "a job of ops has no assets to combine; combine nodes of the pipeline instead"
        raise PipelineDefinitionError(plan.spec.key.path[0], reason)

    @dg.op(name=f"{SOURCE}_records", description=plan.spec.description)
    def _source(context: dg.OpExecutionContext, dataops: DataOpsResource) -> JsonlDataset:
        files = [source for _, source in plan.inputs if isinstance(source, (Path, ObjectUrl))]
        datasets = [JsonlDataset.at(dataops.location(file)) for file in files]
        folder = dataops.folder(plan.spec.key.path)
        report = dataops.run_operator(context, plan.node.operator, datasets, folder)
        columns = column_metadata(plan.node.operator, [], report.dataset)
        context.add_output_metadata({**report_metadata(report), **columns})
        return report.dataset

    return _source


def _file_op(path: str | os.PathLike[str]) -> dg.OpDefinition:
    @dg.op(name=f"{SOURCE}_records", description=f"The records in {Path(path).name}.")
    def _source(context: dg.OpExecutionContext) -> JsonlDataset:
        dataset = JsonlDataset.of_file(path)
        context.add_output_metadata(dataset_metadata(dataset))
        return dataset

    return _source
