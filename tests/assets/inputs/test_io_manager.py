"""Tests of datasets between assets, in the form of the annotation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional

import dagster as dg
import pandas as pd
import pytest

from dagster_dataops import DataOpsIOManager, JsonlDataset
from dagster_dataops.assets.inputs.io_manager import in_form, records_of
from dagster_dataops.errors import InputError, ResultMissingError
from tests.assets.helpers import (
    dataset_of,
    numbered,
    polars_frame,
    resource_at,
    result_of,
)

ROWS = [{"id": 0, "text": "a"}, {"id": 1, "text": "b"}]


@pytest.fixture
def resources(root: Path) -> dict[str, Any]:
    dataops = resource_at(root)
    return {"dataops_io": DataOpsIOManager(dataops=dataops)}


def returning(value: Any) -> dg.AssetsDefinition:
    @dg.asset(key=["own", "made"], io_manager_key="dataops_io")
    def made() -> Any:
        return value

    return made


def loaded_as(
    annotation: Any, resources: dict[str, Any], instance: dg.DagsterInstance, value: Any = ROWS
) -> Any:
    """Return the value that an asset gets for another one's result, by its annotation."""
    found: list[Any] = []

    def load(made: Any) -> None:
        found.append(made)

    load.__annotations__["made"] = annotation
    loading = dg.asset(ins={"made": dg.AssetIn(key=["own", "made"])})(load)
    dg.materialize([returning(value), loading], resources=resources, instance=instance)
    return found[0]


@pytest.mark.parametrize("annotation", [JsonlDataset, Any, JsonlDataset | None])
def test_an_asset_gets_a_handle_by_default(
    annotation: Any, resources: dict[str, Any], instance: dg.DagsterInstance, root: Path
) -> None:
    dataset = loaded_as(annotation, resources, instance)
    assert isinstance(dataset, JsonlDataset)
    assert dataset.path == root / "own/made/made_results.jsonl"
    assert dataset.rows == 2
    assert dataset.fingerprint is not None
    assert list(dataset) == ROWS


@pytest.mark.parametrize(
    "annotation",
    [list, list[dict], list[dict[str, Any]], list[dict] | None, Optional[list], Sequence[dict]],  # noqa: UP045
    ids=str,
)
def test_a_list_annotation_gives_the_records(
    annotation: Any, resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    assert loaded_as(annotation, resources, instance) == ROWS


@pytest.mark.parametrize("annotation", [pd.DataFrame, pd.DataFrame | None], ids=str)
def test_a_pandas_annotation_gives_a_frame(
    annotation: Any, resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    frame = loaded_as(annotation, resources, instance)
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_dict(orient="records") == ROWS


@pytest.mark.parametrize("optional", [False, True])
def test_a_polars_annotation_gives_a_frame(
    optional: bool, resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    annotation = polars_frame() | None if optional else polars_frame()
    frame = loaded_as(annotation, resources, instance)
    assert isinstance(frame, polars_frame())
    assert frame.to_dicts() == ROWS


def test_a_polars_frame_infers_types_from_all_rows(tmp_path: Path) -> None:
    rows = [{"value": None} for _ in range(200)] + [{"value": 0.5}]
    dataset = dataset_of(tmp_path / "rows.jsonl", rows)
    assert in_form([dataset], polars_frame()).to_dicts() == rows


def _polars_of(rows: Any) -> Any:
    return polars_frame()(rows)


@pytest.mark.parametrize(
    "make",
    [list, tuple, pd.DataFrame, _polars_of],
    ids=["list", "tuple", "pandas", "polars"],
)
def test_an_asset_may_return_records_or_a_frame(
    make: Any, resources: dict[str, Any], instance: dg.DagsterInstance, root: Path
) -> None:
    result = dg.materialize([returning(make(ROWS))], resources=resources, instance=instance)
    assert result_of(root, "own", "made") == ROWS
    metadata = result.asset_materializations_for_node("own__made")[0].metadata
    assert metadata["dagster/row_count"].value == 2
    assert metadata["dagster/size_bytes"].value == 40
    assert str(metadata["dagster_dataops/preview"].value).startswith("| id | text |")


def test_a_result_may_be_an_iterator(
    resources: dict[str, Any], instance: dg.DagsterInstance, root: Path
) -> None:
    made = returning(dg.MaterializeResult(value=iter(ROWS)))
    dg.materialize([made], resources=resources, instance=instance)
    assert result_of(root, "own", "made") == ROWS


def test_one_dict_is_one_record() -> None:
    assert list(records_of(ROWS[0])) == [ROWS[0]]


def test_missing_values_of_a_pandas_frame_are_null() -> None:
    frame = pd.DataFrame({"a": [1.5, None], "b": [None, "x"], "c": [pd.NA, 3]})
    assert list(records_of(frame)) == [
        {"a": 1.5, "b": None, "c": None},
        {"a": None, "b": "x", "c": 3},
    ]


def test_integers_of_a_pandas_frame_stay_integers() -> None:
    (record,) = records_of(pd.DataFrame({"a": [1], "b": [True]}))
    assert record == {"a": 1, "b": True}
    assert [type(value) for value in record.values()] == [int, bool]  # type: ignore[attr-defined]


def test_an_asset_may_return_a_handle_of_its_own_file(
    tmp_path: Path, resources: dict[str, Any], instance: dg.DagsterInstance, root: Path
) -> None:
    elsewhere = dataset_of(tmp_path / "elsewhere.jsonl", numbered(3))
    dg.materialize([returning(elsewhere)], resources=resources, instance=instance)
    assert result_of(root, "own", "made") == list(numbered(3))
    assert elsewhere.path.exists()


@pytest.mark.parametrize("value", [5, "text", b"bytes", 1.5])
def test_an_object_without_records_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="returns a JsonlDataset, records or a DataFrame"):
        records_of(value)


def test_a_result_is_kept_when_an_asset_returns_no_records(
    resources: dict[str, Any], instance: dg.DagsterInstance, root: Path
) -> None:
    dg.materialize([returning(ROWS)], resources=resources, instance=instance)
    with pytest.raises(InputError, match="record 1 is a int, not a dict"):
        dg.materialize([returning([{"a": 1}, 2])], resources=resources, instance=instance)
    assert result_of(root, "own", "made") == ROWS


def test_a_missing_result_is_named_by_its_path(
    resources: dict[str, Any], instance: dg.DagsterInstance, root: Path
) -> None:
    @dg.asset
    def loading(made: list[dict]) -> None: ...

    made = dg.AssetSpec("made").with_io_manager_key("dataops_io")
    with pytest.raises(ResultMissingError, match=str(root / "made" / "made_results.jsonl")):
        dg.materialize([made, loading], resources=resources, instance=instance)


letters = dg.StaticPartitionsDefinition(["a", "b", "../c"])


@dg.asset(partitions_def=letters, io_manager_key="dataops_io")
def partitioned(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
    return [{"letter": context.partition_key}]


@pytest.fixture
def all_partitions(resources: dict[str, Any], instance: dg.DagsterInstance) -> None:
    for key in letters.get_partition_keys():
        dg.materialize([partitioned], resources=resources, instance=instance, partition_key=key)


@pytest.mark.usefixtures("all_partitions")
def test_every_partition_has_a_separate_folder_inside_the_root(root: Path) -> None:
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*_results.jsonl"))
    assert found == [
        f"partitioned/partitions/{folder}/partitioned_results.jsonl"
        for folder in ("%2E.%2Fc", "a", "b")
    ]


@pytest.mark.usefixtures("all_partitions")
def test_a_partition_is_loaded_from_the_same_partition(
    resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    found: list[Any] = []

    @dg.asset(partitions_def=letters)
    def loading(partitioned: list[dict]) -> None:
        found.append(partitioned)

    dg.materialize(
        [partitioned, loading],
        resources=resources,
        instance=instance,
        selection=[loading],
        partition_key="../c",
    )
    assert found == [[{"letter": "../c"}]]


@pytest.mark.usefixtures("all_partitions")
@pytest.mark.parametrize(
    ("annotation_of", "kind_of"),
    [
        (lambda: dict[str, polars_frame()], polars_frame),
        (lambda: dict[str, list[dict]], lambda: list),
        (lambda: dict, lambda: JsonlDataset),
    ],
    ids=["frames", "lists", "handles"],
)
def test_all_partitions_are_loaded_as_a_dict_by_partition_key(
    annotation_of: Any, kind_of: Any, resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    found: list[Any] = []

    def load(partitioned: Any) -> None:
        found.append(partitioned)

    load.__annotations__["partitioned"] = annotation_of()
    loading = dg.asset(load)
    dg.materialize(
        [partitioned, loading], resources=resources, instance=instance, selection=[loading]
    )
    assert list(found[0]) == ["a", "b", "../c"]
    assert {type(value) for value in found[0].values()} == {kind_of()}


RANGE = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}


@pytest.mark.parametrize("whole", [True, False], ids=["every", "one missing"])
def test_a_run_of_several_partitions_stores_one_value_per_partition(
    whole: bool, resources: dict[str, Any], instance: dg.DagsterInstance, root: Path
) -> None:
    @dg.asset(partitions_def=letters, io_manager_key="dataops_io")
    def several(context: dg.AssetExecutionContext) -> dict[str, list[dict[str, Any]]]:
        keys = context.partition_keys if whole else context.partition_keys[1:]
        return {key: [{"letter": key}] for key in keys}

    result = dg.materialize(
        [several], resources=resources, instance=instance, tags=RANGE, raise_on_error=False
    )
    assert result.success is whole
    found = sorted(path.parent.name for path in root.rglob("several_results.jsonl"))
    assert found == (["a", "b"] if whole else [])


@pytest.mark.usefixtures("all_partitions")
@pytest.mark.parametrize(
    ("annotation_of", "records_of_it"),
    [
        (lambda: list[dict], lambda value: value),
        (lambda: list[dict] | None, lambda value: value),
        (lambda: pd.DataFrame, lambda value: value.to_dict(orient="records")),
        (polars_frame, lambda value: value.to_dicts()),
        (lambda: dict[str, pd.DataFrame], lambda value: [f.letter[0] for f in value.values()]),
        (
            lambda: dict[str, JsonlDataset] | None,
            lambda value: [dataset.read()[0]["letter"] for dataset in value.values()],
        ),
    ],
    ids=["list", "optional list", "pandas", "polars", "dict of frames", "optional dict"],
)
def test_all_partitions_are_loaded_in_order_in_every_form(
    annotation_of: Any,
    records_of_it: Any,
    resources: dict[str, Any],
    instance: dg.DagsterInstance,
) -> None:
    found = all_loaded(annotation_of(), resources, instance)
    letters_found = [
        one["letter"] if isinstance(one, dict) else one for one in records_of_it(found)
    ]
    assert letters_found == ["a", "b", "../c"]


def all_loaded(
    annotation: Any, resources: dict[str, Any], instance: dg.DagsterInstance, **keywords: Any
) -> Any:
    """Return the value that an unpartitioned asset gets for all partitions."""
    found: list[Any] = []

    def load(partitioned: Any) -> None:
        found.append(partitioned)

    load.__annotations__["partitioned"] = annotation
    loading = dg.asset(ins={"partitioned": dg.AssetIn(**keywords)})(load)
    dg.materialize(
        [partitioned, loading], resources=resources, instance=instance, selection=[loading]
    )
    return found[0]


@pytest.mark.usefixtures("all_partitions")
def test_several_partitions_are_no_single_handle(
    resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    with pytest.raises(
        InputError, match=r"partitioned: has 3 partitions.*dict\[str, JsonlDataset\]"
    ):
        all_loaded(JsonlDataset, resources, instance)


@pytest.mark.parametrize(
    ("annotation", "found"),
    [(list[dict], [{"letter": "b"}]), (JsonlDataset, None), (dict[str, list], None)],
    ids=["list", "handle", "dict"],
)
def test_missing_partitions_are_named_or_left_out_on_request(
    annotation: Any, found: Any, resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    dg.materialize([partitioned], resources=resources, instance=instance, partition_key="b")
    with pytest.raises(ResultMissingError, match=r"2 of 3 partitions are missing: a, \.\./c"):
        all_loaded(annotation, resources, instance)
    skip = {"metadata": {"allow_missing_partitions": True}}
    loaded = all_loaded(annotation, resources, instance, **skip)
    if annotation is JsonlDataset:
        assert loaded.read() == [{"letter": "b"}]
    else:
        assert loaded == (found or {"b": [{"letter": "b"}]})
