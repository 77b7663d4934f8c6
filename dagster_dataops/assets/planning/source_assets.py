"""SourceAsset: the source of a pipeline in Dagster: a file, a function, or another asset."""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.inputs.multi_partition import PartitionResult, materialize
from dagster_dataops.assets.inputs.path_pattern import PathPattern, is_pattern
from dagster_dataops.assets.inputs.source_results import source_result
from dagster_dataops.assets.planning.asset_options import (
    AssetOptions,
    automation_condition_of,
    backfills,
)
from dagster_dataops.assets.planning.descriptions import described
from dagster_dataops.assets.runtime.asset_paths import key_of
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.errors import ConfigurationError, OperatorDefinitionError
from dagster_dataops.execution.runners.given_stream import Streamed, file_name, is_stream
from dagster_dataops.operators.spec_builder import checked_name
from dagster_dataops.pipelines.combined_inputs import Combined
from dagster_dataops.streams.files.locations import compression_of

if TYPE_CHECKING:
    from dagster_dataops.streams.operations import Operations

IO_MANAGER: Final = "dataops_io"
Source: TypeAlias = (
    "str | os.PathLike[str] | Callable[..., Iterable[dict[str, Any]] | Operations] | dg.AssetKey | "
    "dg.AssetSpec | dg.AssetsDefinition | Operations | Streamed | Combined"
)


@dataclass(frozen=True, slots=True)
class SourceAsset:
    """The asset that stands for a pipeline's source.

    Attributes:
        key: Asset key.
        definition: Asset or spec to add to the definitions; ``None`` for another's asset.
        path: File of an external asset, or a pattern for a file per partition.
        function: Function that yields the records, if the asset is made of one.
    """

    key: dg.AssetKey
    definition: dg.AssetsDefinition | dg.AssetSpec | None
    path: Path | PathPattern | None = None
    function: Callable[..., Any] | None = None


def source_asset(source: Source, pipeline: str, options: AssetOptions | None = None) -> SourceAsset:
    """Return the asset of a source.

    Args:
        source: A jsonl file (an external asset), a function that yields dicts (an asset that
            writes them), an asset of the same definitions or its key, or the spec of an asset
            that `DataOpsIOManager` stores in another code location under the same root.
        pipeline: Name of the pipeline, first part of a new asset's key.
        options: With partitions, a path has ``{partition}`` in it and a function takes the
            partition key.

    Raises:
        ConfigurationError: A path has no ``{partition}`` for its partitions, or has one without.
        OperatorDefinitionError: A function does not take exactly the partition key.
    """
    options = options or {}
    if isinstance(source, dg.AssetKey):
        return SourceAsset(source, None)
    if isinstance(source, dg.AssetSpec):
        return SourceAsset(source.key, source.with_io_manager_key(IO_MANAGER))
    if isinstance(source, dg.AssetsDefinition):
        return SourceAsset(_only_key(source), None)
    if isinstance(source, (str, os.PathLike)):
        return _file_source(os.fspath(source), pipeline, options)
    if not callable(source):
        raise _no_source(source)
    key = _key(pipeline, function_name(source))
    check_arguments(source, partitioned=options.get("partitions_def") is not None)
    return SourceAsset(key, _function_asset(source, key, pipeline, options), function=source)


def makes_asset(source: Source) -> bool:
    """Whether the source becomes a new asset that writes its records."""
    if isinstance(source, (str, os.PathLike)):
        return is_streamed_file(os.fspath(source))
    return inspect.isroutine(source) or isinstance(source, Combined) or is_stream(source)


def _only_key(assets: dg.AssetsDefinition) -> dg.AssetKey:
    keys = sorted(key.to_user_string() for key in assets.keys)
    if len(keys) != 1:
        reason = f"it has {len(keys)} assets; give the key of one of them: {', '.join(keys)}"
        raise OperatorDefinitionError(f"source {assets.op.name}", reason)
    return assets.key


def is_streamed_file(text: str) -> bool:
    """Whether a path is a URL or a compressed file, which is read as a stream."""
    return "://" in text or compression_of(text) is not None


def _file_source(text: str, pipeline: str, options: AssetOptions) -> SourceAsset:
    partitions_def = options.get("partitions_def")
    if partitions_def is not None:
        skip = options.get("allow_missing_partitions", False)
        pattern = PathPattern(text, partitions_def, allow_missing=skip)
        key = _key(pipeline, pattern.name)
        return SourceAsset(key, _pattern_spec(key, pattern, pipeline), pattern)
    if is_pattern(text):
        allowed = "without {partition}, or the pipeline must have partitions_def=..."
        raise ConfigurationError("source", text, allowed)
    path = Path(text).expanduser().absolute()
    key = _key(pipeline, named_after(Path(file_name(text)).stem or path.stem))
    return SourceAsset(key, _file_spec(key, path, pipeline), path)


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a source function.

    Raises:
        OperatorDefinitionError: Its name cannot name an asset, such as that of a lambda.
    """
    name = getattr(function, "__name__", "")  # Python 3.14 counts partial objects as routines
    if not name or not inspect.isroutine(function):
        raise _no_source(function)
    return checked_name(name, function)


def _no_source(source: object) -> OperatorDefinitionError:
    reason = "a source is a path, a function that yields dicts, a stream, or an asset"
    if isinstance(source, (list, tuple)):
        reason += "; several are one by combine.concat([...]), combine.sample([...]) and the like"
    return OperatorDefinitionError(f"source {source!r}"[:200], reason)


def check_arguments(function: Callable[..., Any], *, partitioned: bool) -> None:
    """Refuse a function that does not take the partition key, or an argument without partitions.

    Raises:
        OperatorDefinitionError: The function takes other arguments.
    """
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


def _key(pipeline: str, name: str) -> dg.AssetKey:
    return dg.AssetKey(key_of(pipeline, name))


def named_after(stem: str) -> str:
    """Return ``stem`` as part of an asset key."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in stem)


def _file_spec(key: dg.AssetKey, path: Path, pipeline: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=key,
        description=f"The records in {path.name}.",
        group_name=pipeline or "dataops",
        kinds={"file", "json"},
        metadata={"dagster/uri": path.as_uri()},
    )


def _pattern_spec(key: dg.AssetKey, pattern: PathPattern, pipeline: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=key,
        description=f"The records in {Path(pattern.text).name}, a file for each partition.",
        group_name=pipeline or "dataops",
        kinds={"file", "json"},
        metadata={"dagster/uri": pattern.folder.as_uri()},
        partitions_def=pattern.partitions,
    )


def _function_asset(
    function: Callable[..., Any],
    key: dg.AssetKey,
    pipeline: str,
    options: AssetOptions,
) -> dg.AssetsDefinition:
    with backfills(options) as policy:

        @dg.asset(
            key=key,
            description=described(function.__doc__),
            group_name=pipeline or "dataops",
            kinds={"python", "json"},
            io_manager_key=IO_MANAGER,
            partitions_def=options.get("partitions_def"),
            automation_condition=automation_condition_of(options, key.path[-1]),
            freshness_policy=options.get("freshness_policy"),
            backfill_policy=policy,
        )
        def _source(
            context: dg.AssetExecutionContext, dataops: DataOpsResource
        ) -> Iterator[dg.MaterializeResult[Any]]:
            def make(partition: str | None) -> PartitionResult:
                folder = dataops.folder(key.path, partition)
                return source_result(context, dataops, function, folder, partition)

            spec = dg.AssetSpec(key, partitions_def=options.get("partitions_def"))
            yield from materialize(context, spec, make)

    return _source
