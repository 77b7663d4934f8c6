"""DataOpsIOManager: hands datasets from asset to asset as handles, lists or DataFrames."""

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg
from typing_extensions import override

from dagster_dataops.assets.metadata import dataset_metadata
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.checkpoints.manifest import load_result, write_result
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError, MissingExtraError


class DataOpsIOManager(dg.ConfigurableIOManager):
    """Loads results by the annotation of the input that asks for them.

    ``JsonlDataset`` (or none) gives the handle, ``list[dict]`` the records, ``pandas.DataFrame``
    and ``polars.DataFrame`` a frame. Several partitions come as a dict by partition key. An
    asset may return any of these, or any iterable of records; what is no handle on its own
    result is written as jsonl.
    """

    dataops: dg.ResourceDependency[DataOpsResource]

    @override
    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Store what an asset returned; a handle on its own result is there already."""
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
        if isinstance(value, JsonlDataset) and value.path == folder.result.absolute():
            return  # with metadata of the step's own
        dataset = write_result(folder, records_of(value), context.run_id)
        if partition is None or context.has_partition_key:
            context.add_output_metadata(dataset_metadata(dataset, partition))

    @override
    def load_input(self, context: dg.InputContext) -> Any:
        """Return an upstream result in the form that the input asks for."""
        wanted: Any = context.dagster_type.typing_type
        key = context.asset_key.path
        if not context.has_asset_partitions:
            return as_form(self._load(key, None), wanted)
        partitions = list(context.asset_partition_keys)
        by_partition = typing.get_origin(wanted) is dict
        if len(partitions) == 1 and not by_partition:
            return as_form(self._load(key, partitions[0]), wanted)
        inner = typing.get_args(wanted)[1] if by_partition else wanted
        return {name: as_form(self._load(key, name), inner) for name in partitions}

    def _load(self, key: Sequence[str], partition: str | None) -> JsonlDataset:
        return load_result(self.dataops.folder(key, partition))


def as_form(dataset: JsonlDataset, wanted: Any) -> Any:
    """Return ``dataset`` as what an annotation asks for; the handle where it asks for nothing."""
    origin = typing.get_origin(wanted) or wanted
    if origin in {typing.Union, types.UnionType}:  # DataFrame | None
        members = [member for member in typing.get_args(wanted) if member is not type(None)]
        return as_form(dataset, members[0])
    if origin in {list, Sequence}:
        return dataset.read()
    module = getattr(origin, "__module__", "").split(".")[0]
    if getattr(origin, "__name__", "") == "DataFrame" and module in {"pandas", "polars"}:
        return _frame(dataset, module)
    return dataset


def _frame(dataset: JsonlDataset, library: str) -> Any:
    if library == "pandas":
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("a pandas.DataFrame input", "pandas") from None
        return pd.DataFrame(dataset.read())
    try:
        import polars as pl
    except ImportError:
        raise MissingExtraError("a polars.DataFrame input", "polars") from None
    return pl.DataFrame(dataset.read(), infer_schema_length=None)


def records_of(value: Any) -> Iterable[object]:
    """Return what an asset returned as records.

    Raises:
        InputError: It is nothing that has records.
    """
    if isinstance(value, Mapping):
        return [dict(value)]
    kind = f"{type(value).__module__.split('.')[0]}.{type(value).__name__}"
    if kind == "pandas.DataFrame":
        known = value.astype(object).where(value.notna(), None)  # JSON has no NaN
        rows: list[object] = known.to_dict(orient="records")
        return rows
    if kind == "polars.DataFrame":
        named: Iterable[object] = value.iter_rows(named=True)
        return named
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return value
    reason = "an asset stored by DataOpsIOManager returns a JsonlDataset, records or a DataFrame"
    raise InputError(f"of type {type(value).__name__}", reason)
