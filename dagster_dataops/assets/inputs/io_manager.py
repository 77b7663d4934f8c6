"""DataOpsIOManager: store results as jsonl and load them as handles, lists or DataFrames."""

import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import dagster as dg
from pydantic import model_validator

from dagster_dataops.assets.inputs.forms import loadable, loading_form, storing_form
from dagster_dataops.assets.inputs.partitions import named, ordered
from dagster_dataops.assets.runtime.resource import DataOpsResource, refuse_unknown
from dagster_dataops.checkpoints.folder.manifest import (
    NodeFolder,
    is_published,
    load_result,
    result_by_range,
    write_result,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError, ResultMissingError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import published_file
from dagster_dataops.foundation.quantities import counted

OPERATOR_INPUT: Final = dg.DagsterType(
    lambda _, __: True,
    "DataOpsInput",
    description="Results of upstream assets.",
)
"""The type of the inputs of operators: they read results on an object store by ranges."""


class DataOpsIOManager(dg.ConfigurableIOManager):
    """Stores the values that assets return, and loads them by the annotation of the input.

    The annotation of an input is one of these:

    - `JsonlDataset`, or none: the handle.
    - `list[dict]`, `Iterator`: the records, all at once or one at a time.
    - `pandas.DataFrame`, `polars.DataFrame`: a frame. `polars.LazyFrame`: one that polars
      reads when it is collected.
    - `pyarrow.Table`, `pyarrow.RecordBatchReader`, `pyarrow.dataset.Dataset`: with the types
      of an export to Parquet. The reader holds one batch at a time.
    - `datasets.Dataset`, `datasets.IterableDataset` of Hugging Face.
    - `pathlib.Path`: the folder of an artefact, or the file of a result.

    Several partitions are joined in their order. Columns are joined by name: a column that a
    partition lacks is missing or null there. `dict[str, ...]`, or no annotation, loads them as a
    dict by partition key, and `list[JsonlDataset]`, `list[Path]` and lists of frames one after
    the other.

    An asset may return any of these forms except a path, or any iterable of records. The value is
    written as jsonl, unless it is a handle of the asset's own result. `register_form` adds forms.
    """

    dataops: dg.ResourceDependency[DataOpsResource]

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, fields: Any) -> Any:
        return refuse_unknown(cls, fields)

    @override
    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Store the value that an asset returned; a handle of its own result is stored already."""
        if not context.has_asset_partitions:
            return self._store(context, None, obj)
        keys = list(context.asset_partition_keys)
        if len(keys) == 1:
            return self._store(context, keys[0], obj)
        if not isinstance(obj, Mapping) or set(obj) != set(keys):
            text = f"a run of several partitions returns a dict by partition key: {keys}"
            raise dg.Failure(text, allow_retries=False)
        for key in keys:
            self._store(context, key, obj[key])
        return None

    def _store(self, context: dg.OutputContext, partition: str | None, value: Any) -> None:
        folder = self.dataops.folder(context.asset_key.path, partition)
        if isinstance(value, JsonlDataset):
            file = published_file(value.location)
            if file is not None and _is_result(Path(file), folder):
                return  # the step adds the metadata
        dataset = write_result(folder, records_of(value), context.run_id)
        if partition is None or context.has_partition_key:
            from dagster_dataops.assets.metadata.materialization import dataset_metadata

            context.add_output_metadata(dataset_metadata(dataset, partition))

    @override
    def load_input(self, context: dg.InputContext) -> Any:
        """Return an upstream result in the form of the input's annotation.

        Raises:
            ResultMissingError: A result does not exist. Missing ones among several partitions are
                skipped if the input has ``metadata={"allow_missing_partitions": True}``.
        """
        wanted = _known(context.dagster_type.typing_type)
        _check_form(_inner_form(wanted) or wanted, context)
        key = context.asset_key.path
        if not context.has_asset_partitions:
            return in_form([_loader(context)(self.dataops.folder(key))], wanted)
        partitions = ordered(context.asset_partition_keys, context.asset_partitions_def)
        inner = _inner_form(wanted)
        if len(partitions) == 1 and inner is None and not _skips_missing(context):
            return in_form([_loader(context)(self.dataops.folder(key, partitions[0]))], wanted)
        datasets = self._load_all(context, partitions)
        if inner is None:
            return _joined_form(datasets, wanted, context.asset_key.to_user_string())
        return {name: in_form([dataset], inner) for name, dataset in datasets.items()}

    def _load_all(
        self, context: dg.InputContext, partitions: Sequence[str]
    ) -> dict[str, JsonlDataset]:
        folders = {name: self.dataops.folder(context.asset_key.path, name) for name in partitions}
        missing = [name for name, folder in folders.items() if not is_published(folder)]
        if missing:
            asset = context.asset_key.to_user_string()
            text = f"{len(missing):,} of {counted(len(partitions), 'partitions')} are missing"
            if not _skips_missing(context):
                reason = (
                    f"{text}: {named(missing)}; to skip them, set allow_missing_partitions=True"
                )
                raise ResultMissingError(f"the partitions of {asset}", reason)
            text = f"{asset}: {text} and skipped: {named(missing)}"
            context.log.warning(text)
        there = folders.keys() - set(missing)
        load = _loader(context)
        return {name: load(folders[name]) for name in partitions if name in there}


def _loader(context: dg.InputContext) -> Callable[[NodeFolder], JsonlDataset]:
    """Return the function that loads a result: assets that are no operators need a file."""
    to_operator = context.dagster_type.key == OPERATOR_INPUT.key
    return result_by_range if to_operator else load_result


def _inner_form(wanted: Any) -> Any:
    """Return the value type of a dict annotation; ``None`` for any other annotation."""
    if (typing.get_origin(wanted) or wanted) not in {dict, Mapping}:
        return None
    arguments = typing.get_args(wanted)
    return arguments[1] if arguments else Any


def _joined_form(datasets: Mapping[str, JsonlDataset], wanted: Any, asset: str) -> Any:
    """Return partitions in their order as one value; without annotation as a dict."""
    if wanted is Any:
        return dict(datasets)
    if not _takes_handle(wanted) or len(datasets) == 1:
        return in_form(list(datasets.values()), wanted)
    if wanted is not JsonlDataset:
        return dict(datasets)
    reason = (
        f"has {len(datasets):,} partitions, which cannot be one JsonlDataset; annotate the input "
        "as dict[str, JsonlDataset], list[dict] or DataFrame"
    )
    raise InputError(asset, reason)


def _skips_missing(context: dg.InputContext) -> bool:
    """Return whether an input skips missing partitions, by the metadata of Dagster's managers."""
    return bool((context.definition_metadata or {}).get("allow_missing_partitions"))


def _known(wanted: Any) -> Any:
    """Return an annotation without its ``| None``."""
    if typing.get_origin(wanted) in {typing.Union, types.UnionType}:
        return next(arg for arg in typing.get_args(wanted) if arg is not type(None))
    return wanted


def in_form(datasets: Sequence[JsonlDataset], wanted: Any) -> Any:
    """Return datasets, in order, in the form of an annotation; by default one handle.

    Raises:
        InputError: The records do not fit into the form, or it cannot hold several partitions.
        MissingExtraError: A package of the form is missing.
    """
    wanted = _known(wanted)
    inner = _listed_form(wanted)
    if inner is not None:
        return [in_form([dataset], inner) for dataset in datasets]
    load = loading_form(typing.get_origin(wanted) or wanted)
    if load is not None:
        return load(datasets)
    return datasets[0]


def _check_form(wanted: Any, context: dg.InputContext) -> None:
    """Check that an input with an annotation can be loaded."""
    kind = typing.get_origin(wanted) or wanted
    if isinstance(kind, type) and not _takes_handle(kind) and loading_form(kind) is None:
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        reason = (
            f"is annotated as {name}, which no form loads. Forms: JsonlDataset, dict by partition, "
            f"{', '.join(loadable())}. Add others by dagster_dataops.assets.register_form"
        )
        raise InputError(f"{context.name!r} of {context.asset_key.to_user_string()}", reason)


def _takes_handle(wanted: Any) -> bool:
    """Return whether an input with this annotation gets a `JsonlDataset`, and no other form."""
    if wanted is Any or not isinstance(wanted, type):
        return loading_form(typing.get_origin(wanted)) is None
    return loading_form(wanted) is None and issubclass(JsonlDataset, wanted)


def _listed_form(wanted: Any) -> Any:
    """Return the type in ``list[...]`` if each partition is loaded as one; else ``None``."""
    if typing.get_origin(wanted) not in {list, Sequence}:
        return None
    (inner,) = typing.get_args(wanted)
    kind = typing.get_origin(inner) or inner
    return inner if kind is JsonlDataset or loading_form(kind) is not None else None


def _is_result(file: Path, folder: NodeFolder) -> bool:
    """Return whether a file is the result of a folder, compressed or not."""
    return file in {folder.result.absolute(), *(path.absolute() for path in folder.other_forms)}


def records_of(value: Any) -> Iterable[object]:
    """Return the records in a value that an asset returned.

    Raises:
        InputError: The value holds no records.
    """
    if isinstance(value, Mapping):
        return [dict(value)]
    store = storing_form(type(value))
    if store is not None:
        return store(value)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return value
    reason = "an asset stored by DataOpsIOManager returns a JsonlDataset, records or a DataFrame"
    if isinstance(value, os.PathLike):
        reason += "; for a file of records return JsonlDataset.of_file(path)"
    raise InputError(f"of type {type(value).__name__}", reason)
