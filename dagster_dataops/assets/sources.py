"""Where a pipeline's records come from in Dagster: a file, a function, or another asset."""

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.metadata import dataset_metadata
from dagster_dataops.assets.places import key_of
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.checkpoints.manifest import write_result
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.operators.definition import checked_name

IO_MANAGER: Final = "dataops_io"
Source: TypeAlias = (
    "str | os.PathLike[str] | Callable[[], Iterable[dict[str, Any]]] | dg.AssetKey | "
    "dg.AssetSpec | dg.AssetsDefinition"
)


@dataclass(frozen=True, slots=True)
class SourceAsset:
    """The asset that stands for a pipeline's source.

    Attributes:
        key: Its key.
        definition: What to add to the definitions, if it is ours.
        path: The file, where the source is one that Dagster does not materialize.
        function: What yields the records, where the asset is made of it.
    """

    key: dg.AssetKey
    definition: dg.AssetsDefinition | dg.AssetSpec | None
    path: Path | None = None
    function: Callable[[], Iterable[dict[str, Any]]] | None = None


def source_asset(source: Source, pipeline: str) -> SourceAsset:
    """Return the asset of a source.

    Args:
        source: A jsonl file (an external asset), a function that yields dicts (an asset that
            writes them), an asset of the same definitions or its key, or the spec of one that
            `DataOpsIOManager` stores in another code location under the same root.
        pipeline: Name of the pipeline, first part of the key of what we make.
    """
    if isinstance(source, dg.AssetKey):
        return SourceAsset(source, None)
    if isinstance(source, dg.AssetSpec):
        return SourceAsset(source.key, source.with_io_manager_key(IO_MANAGER))
    if isinstance(source, dg.AssetsDefinition):
        return SourceAsset(source.key, None)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source).expanduser().absolute()
        return SourceAsset(_key(pipeline, _named(path.stem)), _file_spec(path, pipeline), path)
    key = _key(pipeline, function_name(source))
    return SourceAsset(key, _function_asset(source, pipeline), function=source)


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a source function.

    Raises:
        OperatorDefinitionError: It has none that an asset could carry, such as a lambda.
    """
    if not inspect.isroutine(function):
        reason = "a source is a path, a function that yields dicts, or an asset"
        raise OperatorDefinitionError(f"source {function!r}", reason)
    return checked_name(function.__name__, function)


def _key(pipeline: str, name: str) -> dg.AssetKey:
    return dg.AssetKey(key_of(pipeline, name))


def _named(stem: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in stem)


def _file_spec(path: Path, pipeline: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        key=_key(pipeline, _named(path.stem)),
        description=f"The records in {path.name}.",
        group_name=pipeline or "dataops",
        kinds={"file", "json"},
        metadata={"dagster/uri": path.as_uri()},
    )


def _function_asset(
    function: Callable[[], Iterable[dict[str, Any]]], pipeline: str
) -> dg.AssetsDefinition:
    @dg.asset(
        key=_key(pipeline, function_name(function)),
        description=function.__doc__,
        group_name=pipeline or "dataops",
        kinds={"python", "json"},
        io_manager_key=IO_MANAGER,
    )
    def _source(
        context: dg.AssetExecutionContext, dataops: DataOpsResource
    ) -> dg.MaterializeResult[JsonlDataset]:
        folder = dataops.folder(context.asset_key.path)
        dataset = write_result(folder, function(), context.run.run_id)
        return dg.MaterializeResult(
            value=dataset,
            metadata=dataset_metadata(dataset),
            data_version=dg.DataVersion(dataset.fingerprint or ""),
        )

    return _source
