"""Tests of datasets between assets, in the form of the annotation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, get_origin

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


def rows_of(value: Any) -> Any:
    if isinstance(value, JsonlDataset):
        return value.read()
    if isinstance(value, pd.DataFrame):
        return value.to_dict(orient="records")
    return value if isinstance(value, list) else value.to_dicts()


@pytest.mark.parametrize(
    "spelling",
    [lambda kind: kind, lambda kind: kind | None, lambda kind: Optional[kind]],  # noqa: UP045
    ids=["plain", "or None", "Optional"],
)
@pytest.mark.parametrize(
    "kind",
    [list, list[dict], list[dict[str, Any]], Sequence[dict], pd.DataFrame, "polars"],
    ids=str,
)
def test_an_annotation_gives_its_form(
    kind: Any, spelling: Any, resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    kind = polars_frame() if kind == "polars" else kind
    value = loaded_as(spelling(kind), resources, instance)
    assert isinstance(value, get_origin(kind) or kind)
    assert rows_of(value) == ROWS


def test_a_polars_frame_infers_types_from_all_rows(tmp_path: Path) -> None:
    rows = [{"value": None} for _ in range(200)] + [{"value": 0.5}]
    dataset = dataset_of(tmp_path / "rows.jsonl", rows)
    assert in_form([dataset], polars_frame()).to_dicts() == rows


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        pd.DataFrame,
        lambda rows: polars_frame()([*rows]),
        lambda rows: dg.MaterializeResult(value=iter(rows)),
    ],
    ids=["list", "tuple", "pandas", "polars", "iterator"],
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


@pytest.mark.parametrize(
    ("value", "records"),
    [
        (ROWS[0], [ROWS[0]]),
        (
            pd.DataFrame({"a": [1.5, None], "b": [None, "x"], "c": [pd.NA, 3]}),
            [{"a": 1.5, "b": None, "c": None}, {"a": None, "b": "x", "c": 3}],
        ),
        (pd.DataFrame({"a": [1], "b": [True]}), [{"a": 1, "b": True}]),
    ],
    ids=["one dict", "missing values", "integers"],
)
def test_a_value_has_these_records(value: Any, records: Any) -> None:
    assert repr(list(records_of(value))) == repr(records)


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
    ("annotation_of", "kind"),
    [
        (lambda: list[dict], "list"),
        (lambda: list[dict] | None, "list"),
        (lambda: pd.DataFrame, "DataFrame"),
        (polars_frame, "DataFrame"),
        (lambda: dict, "JsonlDataset"),
        (lambda: dict[str, JsonlDataset] | None, "JsonlDataset"),
        (lambda: dict[str, list[dict]], "list"),
        (lambda: dict[str, pd.DataFrame], "DataFrame"),
        (lambda: dict[str, polars_frame()], "DataFrame"),
    ],
)
def test_all_partitions_are_loaded_in_order_in_every_form(
    annotation_of: Any, kind: str, resources: dict[str, Any], instance: dg.DagsterInstance
) -> None:
    found = all_loaded(annotation_of(), resources, instance)
    values = found if isinstance(found, dict) else {"all": found}
    assert list(values) in (["a", "b", "../c"], ["all"])
    assert {type(value).__name__ for value in values.values()} == {kind}
    rows = [row["letter"] for value in values.values() for row in rows_of(value)]
    assert rows == ["a", "b", "../c"]


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
