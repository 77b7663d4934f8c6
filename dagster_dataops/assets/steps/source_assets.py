"""The asset of a pipeline's source: a file, a function, a stream, another asset, or several.

A stream, and several assets and files that are combined, are an asset that runs like an operator,
with a checkpoint and the same metadata.
"""

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.inputs.external_datasets import dataset_keys, dataset_specs
from dagster_dataops.assets.inputs.path_pattern import PathPattern, SourceFile, is_pattern
from dagster_dataops.assets.inputs.source_results import SourceWork
from dagster_dataops.assets.metadata.code_references import code_references
from dagster_dataops.assets.metadata.leaf_metadata import planned_leaves
from dagster_dataops.assets.metadata.markdown import table
from dagster_dataops.assets.metadata.metadata_keys import STAGES, URI
from dagster_dataops.assets.planning.asset_options import (
    AssetOptions,
    automation_condition_of,
    backfills,
    form_of,
    resource_key_of,
    root_of,
    step_tags_of,
)
from dagster_dataops.assets.planning.asset_plan import AssetPlan, SourceAsset
from dagster_dataops.assets.planning.check_translation import CheckTranslation
from dagster_dataops.assets.planning.described_columns import DescribedColumns, divided
from dagster_dataops.assets.planning.descriptions import described
from dagster_dataops.assets.planning.execute_hook import execute_hook
from dagster_dataops.assets.planning.run_tags import operator_tag
from dagster_dataops.assets.planning.translator import (
    code_version,
    definition_metadata,
    description_of,
)
from dagster_dataops.assets.runtime.asset_paths import key_of, located
from dagster_dataops.assets.runtime.resource import io_manager_key
from dagster_dataops.assets.steps.operator_step import StepOptions, operator_step
from dagster_dataops.assets.steps.step_body import body_of, step_function
from dagster_dataops.errors import (
    ConfigurationError,
    OperatorDefinitionError,
    PipelineDefinitionError,
)
from dagster_dataops.execution.runners.given_stream import (
    GivenStream,
    Streamed,
    as_reading,
    file_name,
    given_stream,
    is_stream,
    name_of_stream,
    stem_of,
)
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.places.url_forms import ObjectUrl, is_object_url
from dagster_dataops.operators.definition.reader_base import Readable, returns_stream
from dagster_dataops.operators.definition.spec_builder import checked_name
from dagster_dataops.pipelines.combined_inputs import Combined
from dagster_dataops.pipelines.graph.operator_node import SOURCE, OperatorNode

if TYPE_CHECKING:
    from dagster_dataops.streams.operations import Operations
    from dagster_dataops.streams.positioned_stream import PositionedStream

Source: TypeAlias = (
    "str | os.PathLike[str] | Callable[..., Iterable[dict[str, Any]] | Operations] | dg.AssetKey "
    "| dg.AssetSpec | dg.AssetsDefinition | Operations | Streamed | Combined"
)

_MAX_DESCRIBED: Final = 5  # sources in the description of an asset


def source_asset(source: Source, pipeline: str, options: AssetOptions | None = None) -> SourceAsset:
    """Return the asset of a source.

    Args:
        source: A jsonl file, also on an object store (an external asset), a function that yields
            dicts (an asset that writes them), a stream or a function that returns one, an asset of
            the same definitions or its key, the spec of an asset that `DataOpsIOManager` stores in
            another code location under the same root, or several of these combined.
        pipeline: Name of the pipeline, first part of a new asset's key.
        options: With partitions, a path has ``{partition}`` in it and a function takes the
            partition key.

    Raises:
        ConfigurationError: A path has no ``{partition}`` for its partitions, or has one without. Or
            there are workers for a source that is not a stream.
        OperatorDefinitionError: A function does not take exactly the partition key.
        StreamDefinitionError: A stream is infinite; the error names the stage.
        PipelineDefinitionError: An input of a combined source is not a source.
    """
    options = options or {}
    asset = _asset_of(source, pipeline, options)
    if options.get("workers") and asset.plan is None:
        raise ConfigurationError("workers", options["workers"], "for a source that is a stream")
    return asset


def _asset_of(source: Source, pipeline: str, options: AssetOptions) -> SourceAsset:
    if isinstance(source, Combined):
        return _combined(source, pipeline, options)
    if is_stream(source):
        text = described(source.description) if isinstance(source, Readable) else None
        return _streamed(_of_stream(source, options), None, pipeline, options, text)
    if isinstance(source, (str, os.PathLike)):
        return _of_path(os.fspath(source), pipeline, options)
    if isinstance(source, (dg.AssetKey, dg.AssetSpec, dg.AssetsDefinition)):
        return _of_asset(source, options)
    return _of_function(source, pipeline, options)


def _of_asset(
    source: dg.AssetKey | dg.AssetSpec | dg.AssetsDefinition, options: AssetOptions
) -> SourceAsset:
    if isinstance(source, dg.AssetKey):
        return SourceAsset(source, None)
    if isinstance(source, dg.AssetSpec):
        return SourceAsset(
            source.key, source.with_io_manager_key(io_manager_key(resource_key_of(options)))
        )
    keys = sorted(key.to_user_string() for key in source.keys)
    if len(keys) != 1:
        reason = f"it has {len(keys)} assets; give the key of one of them: {', '.join(keys)}"
        raise OperatorDefinitionError(f"source {source.op.name}", reason)
    return SourceAsset(source.key, None)


def _of_function(source: Any, pipeline: str, options: AssetOptions) -> SourceAsset:
    if not callable(source):
        raise _no_source(source)
    streamed = returns_stream(source)
    name = (streamed and options.get("stream_name")) or function_name(source)
    _check_arguments(source, partitioned=options.get("partitions_def") is not None)
    if streamed:
        text = described(source.__doc__)
        return _streamed(given_stream(name, source, source), source, pipeline, options, text)
    key = dg.AssetKey(key_of(pipeline, name))
    return SourceAsset(key, _function_asset(source, key, pipeline, options), function=source)


def _is_streamed(text: str) -> bool:
    """Return whether a stream reads a path: a compressed file, or a URL but for jsonl objects."""
    from dagster_dataops.streams.files.locations import compression_of

    return compression_of(text) is not None or ("://" in text and not is_object_url(text))


def _of_path(text: str, pipeline: str, options: AssetOptions) -> SourceAsset:
    partitions_def = options.get("partitions_def")
    if partitions_def is None and is_pattern(text):
        allowed = "without {partition}, or the pipeline must have partitions_def=..."
        raise ConfigurationError("source", text, allowed)
    if _is_streamed(text):
        return _streamed(_of_file(text, options), None, pipeline, options)
    path: SourceFile
    if partitions_def is None:
        here = Path(text).expanduser().absolute()
        path = ObjectUrl(text) if is_object_url(text) else here
        name = _named_after(Path(file_name(text)).stem or here.stem)
        said, uri = here.name, text if is_object_url(text) else here.as_uri()
    else:
        skip = options.get("allow_missing_partitions", False)
        path = PathPattern(text, partitions_def, allow_missing=skip)
        name, uri = path.name, path.uri
        said = f"{Path(path.text).name}, a file for each partition"
    spec = dg.AssetSpec(
        key=dg.AssetKey(key_of(pipeline, name)),
        description=f"The records in {said}.",
        group_name=pipeline or "dataops",
        kinds={"file", "json"},
        metadata={URI: uri},
        partitions_def=partitions_def,
    )
    return SourceAsset(spec.key, spec, path)


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a source function.

    Raises:
        OperatorDefinitionError: The name cannot name an asset, for example the name of a lambda.
    """
    name = getattr(function, "__name__", "")  # Python 3.14 counts partial objects as routines
    if not name or not inspect.isroutine(function):
        raise _no_source(function)
    return checked_name(name, function)


def _no_source(source: object) -> OperatorDefinitionError:
    reason = "a source is a path, a function that yields dicts, a stream, or an asset"
    if isinstance(source, (list, tuple)):
        reason += "; combine several with combine.concat([...]) or combine.sample([...])"
    return OperatorDefinitionError(f"source {source!r}"[:200], reason)


def _check_arguments(function: Callable[..., Any], *, partitioned: bool) -> None:
    """Check that a function takes exactly the partition key, or no argument without partitions."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C without a signature
        return
    try:
        signature.bind(*([""] if partitioned else []))
    except TypeError:
        wanted = "one argument, the partition's key" if partitioned else "no argument"
        reason = f"a source of a pipeline {'with' if partitioned else 'without'} partitions takes "
        raise OperatorDefinitionError(
            f"source {function.__name__}{signature}", f"{reason}{wanted}"
        ) from None


def _named_after(stem: str) -> str:
    """Return ``stem`` as part of an asset key."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in stem)


def _function_asset(
    function: Callable[..., Any],
    key: dg.AssetKey,
    pipeline: str,
    options: AssetOptions,
) -> dg.AssetsDefinition:
    resource_key = resource_key_of(options)
    spec = dg.AssetSpec(key, partitions_def=options.get("partitions_def"))
    body = body_of(resource_key, execute_hook(options, pipeline))
    with backfills(options) as policy:
        return dg.asset(
            key=key,
            description=described(function.__doc__),
            group_name=pipeline or "dataops",
            kinds={"python", "json"},
            io_manager_key=io_manager_key(resource_key),
            op_tags=step_tags_of(options, SOURCE),
            partitions_def=spec.partitions_def,
            automation_condition=automation_condition_of(options, key.path[-1]),
            freshness_policy=options.get("freshness_policy"),
            backfill_policy=policy,
        )(step_function(body, lambda _, __: SourceWork(function, spec)))


def _of_stream(source: object, options: AssetOptions) -> GivenStream:
    name = _named_after(options.get("stream_name") or name_of_stream(source))
    if options.get("partitions_def") is not None:
        allowed = "a function of the partition's key that is annotated to return a stream"
        raise ConfigurationError("source", source, f"{allowed}, because there are partitions")
    as_reading(source, name)
    return given_stream(name, lambda: source)


def _of_file(text: str, options: AssetOptions) -> GivenStream:
    """Return the stream of a remote or compressed file, or of one such file per partition."""
    from dagster_dataops.streams.factories import read_jsonl

    scheme, separator, rest = text.rpartition("://")
    partitions_def = options.get("partitions_def")
    if partitions_def is None:
        place = text if separator else str(Path(text).expanduser().absolute())
        name = _named_after(options.get("stream_name") or stem_of(text))
        return given_stream(name or "stream", lambda: read_jsonl(place))
    pattern = PathPattern(f"/{rest}" if separator else text, partitions_def)

    def of(key: str) -> "Operations":
        path = str(pattern.path(key))
        return read_jsonl(f"{scheme}://{path[1:]}" if separator else path)

    return given_stream(_named_after(options.get("stream_name") or "") or stem_of(pattern.name), of)


def _streamed(
    operator: GivenStream,
    function: Callable[..., Any] | None,
    pipeline: str,
    options: AssetOptions,
    text: str | None = None,
) -> SourceAsset:
    operator.workers = options.get("workers", 0)
    stages: PositionedStream | None = None
    if function is None and options.get("partitions_def") is None:
        stages = operator.stream()
    name = operator.__dataops__.spec.name
    ordered = [] if stages is None else stages.stage.ordered()
    leaves = [dataset for stage in ordered for dataset in stage.datasets()]
    spec = _spec(name, pipeline, options).replace_attributes(
        deps=dataset_keys(leaves),
        description=text or _contents(stages) or f"The items of stream {name}.",
        code_version=_version(operator, stages),
        metadata={**_stages(stages), **planned_leaves(leaves), **code_references(function)},
    )
    plan = AssetPlan(OperatorNode(SOURCE, operator, ()), spec, {}, ())
    files = dataset_specs(leaves, pipeline or "dataops")
    return _planned(plan, options, function=function, files=files)


def _contents(stream: "PositionedStream | None") -> str:
    """Return sentences about the data that a stream reads, for at most a few sources."""
    texts = [] if stream is None else [stage.contents for stage in stream.stage.ordered()]
    said = list(dict.fromkeys(filter(None, texts)))
    more = [f"And {len(said) - _MAX_DESCRIBED:,} more."] if len(said) > _MAX_DESCRIBED else []
    return " ".join([*said[:_MAX_DESCRIBED], *more])


def _version(operator: GivenStream, stream: "PositionedStream | None") -> str:
    if stream is None:
        return operator.__dataops__.spec.code_version[:12]
    from dagster_dataops.streams.identity.stream_identity import definition

    defined = definition(stream.stage)
    return f"{defined['code'][:12]}-{digest([defined['options'], stream.given_seeds])[:8]}"


def _stages(stream: "PositionedStream | None") -> dict[str, Any]:
    if stream is None:
        return {}
    rows = [(number, stage.name) for number, stage in enumerate(stream.stage.ordered(), 1)]
    return {STAGES: dg.MetadataValue.md(table(["", "stage"], rows))}


def _spec(name: str, pipeline: str, options: AssetOptions) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=dg.AssetKey(key_of(pipeline, name)),
        group_name=pipeline or "dataops",
        kinds={"python", "json"},
        partitions_def=options.get("partitions_def"),
        automation_condition=automation_condition_of(options, name),
        freshness_policy=options.get("freshness_policy"),
    )


def _planned(
    plan: AssetPlan,
    options: AssetOptions,
    *,
    function: Callable[..., Any] | None = None,
    files: tuple[dg.AssetSpec, ...] = (),
) -> SourceAsset:
    spec = located(plan.spec, root_of(options), form_of(options))
    pipeline = spec.group_name or ""
    translation = CheckTranslation.of(pipeline, options.get("dagster_dataops_translator"))
    common, by_node = divided(options.get("columns"))
    columns = DescribedColumns(None, common, by_node)
    manager = io_manager_key(resource_key_of(options))
    plan = replace(plan, spec=spec, check_translation=translation, columns=columns, manager=manager)
    step = StepOptions.of(options, execute_hook(options, pipeline))
    definition = operator_step(plan, replace(step, op_tags=step_tags_of(options, SOURCE)))
    return SourceAsset(spec.key, definition, function=function, plan=plan, files=files)


def _combined(source: Combined, pipeline: str, options: AssetOptions) -> SourceAsset:
    sources = [_source_of(value, pipeline, options) for value in source.inputs]
    ins: dict[str, dg.AssetIn] = {}
    inputs: list[tuple[dg.AssetKey, str | SourceFile]] = []
    for number, origin in enumerate(sources, 1):
        if origin.path is None:
            ins[f"input_{number}"] = dg.AssetIn(key=origin.key)
        inputs.append((origin.key, origin.path or f"input_{number}"))
    node = OperatorNode(SOURCE, source.operator, tuple(map(str, range(1, len(sources) + 1))))
    invocation = source.operator.__dataops__
    name = options.get("stream_name") or invocation.spec.name.lower()
    spec = _spec(name, pipeline, options).replace_attributes(
        description=description_of(invocation.spec),
        deps=list(dict.fromkeys(origin.key for origin in sources)),
        code_version=code_version(invocation),
        metadata=definition_metadata(node),
        tags=operator_tag(invocation.spec.reference),
    )
    known = [origin.definition for origin in sources]
    files = tuple({file.key: file for file in known if isinstance(file, dg.AssetSpec)}.values())
    return _planned(AssetPlan(node, spec, ins, inputs), options, files=files)


def _source_of(source: object, pipeline: str, options: AssetOptions) -> SourceAsset:
    kinds = (str, os.PathLike, dg.AssetKey, dg.AssetSpec, dg.AssetsDefinition)
    compressed = isinstance(source, (str, os.PathLike)) and _is_streamed(os.fspath(source))
    if not isinstance(source, kinds) or compressed:
        reason = (
            f"a source combines assets, keys of assets and paths of plain jsonl files, not "
            f"{source!r}; combine streams with functions of DataPipeline, such as sample"
        )
        raise PipelineDefinitionError(pipeline, reason[:400])
    return source_asset(source, pipeline, options)
