"""Sources that are streams, or that combine files and assets.

Each is an asset that runs like an operator, with a checkpoint and the same metadata.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from dagster_dataops.assets.inputs.path_pattern import PathPattern, is_pattern
from dagster_dataops.assets.metadata.code_references import code_references
from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_prefix import METADATA_PREFIX
from dagster_dataops.assets.planning.asset_options import (
    AssetOptions,
    automation_condition_of,
    root_of,
)
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.planning.descriptions import described
from dagster_dataops.assets.planning.source_assets import (
    IO_MANAGER,
    Source,
    SourceAsset,
    check_arguments,
    function_name,
    is_streamed_file,
    named_after,
    source_asset,
)
from dagster_dataops.assets.planning.translator import code_version, definition_metadata
from dagster_dataops.assets.runtime.asset_paths import key_of, located
from dagster_dataops.assets.steps.operator_step import StepOptions, operator_step
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from dagster_dataops.execution.runners.given_stream import (
    GivenStream,
    as_reading,
    given_stream,
    is_stream,
    name_of_stream,
    stem_of,
)
from dagster_dataops.graph.graph import SOURCE, OperatorNode
from dagster_dataops.hashing.values import digest
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.reader_base import Readable, returns_stream
from dagster_dataops.pipelines.combined_inputs import Combined
from dagster_dataops.streams.core.stream_identity import definition
from dagster_dataops.streams.factories import read_jsonl
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import PositionedStream


@dataclass(frozen=True, kw_only=True)
class StreamSource(SourceAsset):
    """A source with its own asset, which is written like the result of an operator.

    Attributes:
        plan: The plan of that asset.
        files: The external assets of the files that it reads.
    """

    plan: AssetPlan
    files: tuple[dg.AssetSpec, ...] = ()


def origin_of(source: Source, pipeline: str, options: AssetOptions | None = None) -> SourceAsset:
    """Return the asset of a source; arguments and errors as `source_asset`.

    Raises:
        StreamDefinitionError: A stream is infinite; the error names the stage.
        PipelineDefinitionError: An input of a combined source is not a source.
    """
    options = options or {}
    if isinstance(source, Combined):
        return _combined(source, pipeline, options)
    if is_stream(source):
        return _streamed(_of_stream(source, options), None, pipeline, options, _reader_text(source))
    if isinstance(source, (str, os.PathLike)) and is_streamed_file(os.fspath(source)):
        return _streamed(_of_file(os.fspath(source), options), None, pipeline, options)
    if callable(source) and returns_stream(source):
        check_arguments(source, partitioned=options.get("partitions_def") is not None)
        name = options.get("stream_name") or function_name(source)
        return _streamed(given_stream(name, source, source), source, pipeline, options)
    return source_asset(source, pipeline, options)


def _of_stream(source: object, options: AssetOptions) -> GivenStream:
    name = named_after(options.get("stream_name") or name_of_stream(source))
    if options.get("partitions_def") is not None:
        allowed = "a function of the partition's key that is annotated to return a stream"
        raise ConfigurationError("source", source, f"{allowed}, because there are partitions")
    as_reading(source, name)
    return given_stream(name, lambda: source)


def _of_file(text: str, options: AssetOptions) -> GivenStream:
    """Return the stream of a remote or compressed file, or of one such file per partition."""
    scheme, separator, rest = text.rpartition("://")
    partitions_def = options.get("partitions_def")
    if partitions_def is None:
        if is_pattern(text):
            allowed = "without {partition}, or the pipeline must have partitions_def=..."
            raise ConfigurationError("source", text, allowed)
        place = text if separator else str(Path(text).expanduser().absolute())
        name = named_after(options.get("stream_name") or stem_of(text))
        return given_stream(name or "stream", lambda: read_jsonl(place))
    pattern = PathPattern(f"/{rest}" if separator else text, partitions_def)

    def of(key: str) -> Operations:
        path = str(pattern.path(key))
        return read_jsonl(f"{scheme}://{path[1:]}" if separator else path)

    return given_stream(named_after(options.get("stream_name") or "") or stem_of(pattern.name), of)


def _streamed(
    operator: GivenStream,
    function: Callable[..., Any] | None,
    pipeline: str,
    options: AssetOptions,
    described: str = "",
) -> StreamSource:
    stages: PositionedStream | None = None
    if function is None and options.get("partitions_def") is None:
        stages = operator.stream()
    spec = _spec(operator, pipeline, options).replace_attributes(
        description=described or _description(operator, function),
        code_version=_version(operator, stages),
        metadata={**_stages(stages), **code_references(function)},
    )
    node = OperatorNode(SOURCE, operator, ())
    plan = AssetPlan(node, _stored(spec, options), {}, ())
    return _source(plan, options, function=function)


def _reader_text(source: object) -> str:
    """Return the description of a reader; empty for another source."""
    text = described(source.description) if isinstance(source, Readable) else None
    return text or ""


def _description(operator: GivenStream, function: Callable[..., Any] | None) -> str:
    text = described(function.__doc__) if function is not None else None
    return text or f"The items of stream {operator.__dataops__.spec.name}."


def _version(operator: GivenStream, stream: PositionedStream | None) -> str:
    if stream is None:
        return operator.__dataops__.spec.code_version[:12]
    defined = definition(stream.stage)
    return f"{defined['code'][:12]}-{digest([defined['options'], stream.given_seeds])[:8]}"


def _stages(stream: PositionedStream | None) -> dict[str, Any]:
    if stream is None:
        return {}
    rows = [(number, stage.name) for number, stage in enumerate(stream.stage.ordered(), 1)]
    return {f"{METADATA_PREFIX}/stages": dg.MetadataValue.md(table(["", "stage"], rows))}


def _spec(operator: Operator, pipeline: str, options: AssetOptions) -> dg.AssetSpec:
    name = operator.__dataops__.spec.name
    return dg.AssetSpec(
        key=dg.AssetKey(key_of(pipeline, name)),
        group_name=pipeline or "dataops",
        kinds={"python", "json"},
        partitions_def=options.get("partitions_def"),
        automation_condition=automation_condition_of(options, name),
        freshness_policy=options.get("freshness_policy"),
    )


def _stored(spec: dg.AssetSpec, options: AssetOptions) -> dg.AssetSpec:
    return located(spec.with_io_manager_key(IO_MANAGER), root_of(options))


def _source(
    plan: AssetPlan,
    options: AssetOptions,
    *,
    function: Callable[..., Any] | None = None,
    files: tuple[dg.AssetSpec, ...] = (),
) -> StreamSource:
    made = operator_step(plan, StepOptions.of(options))
    return StreamSource(plan.spec.key, made, None, function, plan=plan, files=files)


def _combined(source: Combined, pipeline: str, options: AssetOptions) -> StreamSource:
    operator = source.operator
    taken = [_taken(one, pipeline, options) for one in source.inputs]
    names = [f"{number}" for number in range(1, len(taken) + 1)]
    ins: dict[str, dg.AssetIn] = {}
    inputs: list[tuple[dg.AssetKey, str | Path | PathPattern]] = []
    for name, origin in zip(names, taken, strict=True):
        if origin.path is not None:
            inputs.append((origin.key, origin.path))
        else:
            ins[f"input_{name}"] = dg.AssetIn(key=origin.key)
            inputs.append((origin.key, f"input_{name}"))
    node = OperatorNode(SOURCE, operator, tuple(names))
    invocation = operator.__dataops__
    name = options.get("stream_name") or invocation.spec.name.lower()
    spec = _spec(operator, pipeline, options).replace_attributes(
        key=dg.AssetKey(key_of(pipeline, name)),
        description=described(invocation.spec.description),
        deps=list(dict.fromkeys(origin.key for origin in taken)),
        code_version=code_version(invocation),
        metadata=definition_metadata(node),
        automation_condition=automation_condition_of(options, name),
    )
    plan = AssetPlan(node, _stored(spec, options), ins, inputs)
    known = [origin.definition for origin in taken]
    files = tuple({one.key: one for one in known if isinstance(one, dg.AssetSpec)}.values())
    return _source(plan, options, files=files)


def _taken(one: object, pipeline: str, options: AssetOptions) -> SourceAsset:
    kinds = (str, os.PathLike, dg.AssetKey, dg.AssetSpec, dg.AssetsDefinition)
    compressed = isinstance(one, (str, os.PathLike)) and is_streamed_file(os.fspath(one))
    if not isinstance(one, kinds) or compressed:
        reason = (
            f"a source combines assets, keys of assets and paths of plain jsonl files, not "
            f"{one!r}; combine streams with functions of DataPipeline, such as sample"
        )
        raise PipelineDefinitionError(pipeline, reason[:400])
    return source_asset(one, pipeline, options)
