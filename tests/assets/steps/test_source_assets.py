"""Tests of the source of a pipeline: a file, a function, or an asset of any IO manager."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from dagster_dataops import DataOpsIOManager
from dagster_dataops.assets.steps.source_assets import source_asset
from dagster_dataops.errors import InputError, OperatorDefinitionError
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    metadata_of,
    numbered,
    pipeline_of,
    polars_frame,
    resource_at,
    result_of,
    spec_of,
)
from tests.registries import OperatorRegistry

UPPER = [{"id": number, "text": f"TEXT {number}"} for number in range(3)]


@pytest.fixture
def upper(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="thread")
    def upper(record: dict) -> None:
        record["text"] = record["text"].upper()

    return pipeline_of(upper=upper())


def texts() -> Iterator[dict[str, Any]]:
    """Three texts."""
    yield from numbered(3)


def test_a_path_is_an_external_asset_that_the_first_node_depends_on(
    upper: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    path = records(3)
    definitions = definitions_of(upper, path, root)
    source = spec_of(definitions, "docs", "texts")
    assert source.description == "The records in texts.jsonl."
    assert source.metadata["dagster/uri"] == path.as_uri()
    deps = spec_of(definitions, "docs", "upper").deps
    assert [dep.asset_key for dep in deps] == [dg.AssetKey(["docs", "texts"])]
    execute(definitions, instance)
    assert result_of(root, "docs", "upper") == UPPER


def test_several_assets_at_once_are_refused_with_their_keys(upper: Any, root: Path) -> None:
    @dg.multi_asset(specs=[dg.AssetSpec("first"), dg.AssetSpec("second")])
    def both() -> tuple[Any, Any]:
        return 1, 2

    with pytest.raises(OperatorDefinitionError, match="2 assets; give the key of one.*first, seco"):
        definitions_of(upper, both, root)


def test_the_name_of_any_file_gives_a_key() -> None:
    key = source_asset("/data/my texts.v2-é.jsonl", "docs").key
    assert key == dg.AssetKey(["docs", "my_texts_v2__"])


def test_a_path_is_opened_when_the_step_runs_not_when_it_is_defined(
    upper: Any, root: Path, tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(upper, tmp_path / "later.jsonl", root)
    with pytest.raises(InputError, match=r"later\.jsonl"):
        execute(definitions, instance)


def test_a_function_is_an_asset_that_writes_its_records(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(upper, texts, root)
    assert spec_of(definitions, "docs", "texts").description == "Three texts."
    result = execute(definitions, instance)
    assert result_of(root, "docs", "texts") == list(numbered(3))
    assert result_of(root, "docs", "upper") == UPPER
    assert metadata_of(result, "docs", "texts")["dagster/row_count"] == 3


@pytest.mark.parametrize(
    "source", [lambda: iter(()), functools.partial(iter, ()), 5], ids=["lambda", "partial", "int"]
)
def test_a_function_whose_name_cannot_name_an_asset_is_not_a_source(source: Any) -> None:
    with pytest.raises(OperatorDefinitionError):
        source_asset(source, "docs")


@pytest.mark.parametrize(
    "make",
    [list, pd.DataFrame, lambda rows: polars_frame()(list(rows))],
    ids=["list", "pandas", "polars"],
)
@pytest.mark.parametrize("stored", ["io_manager", "dataops_io"])
def test_an_upstream_asset_may_return_anything_and_be_stored_by_any_io_manager(
    make: Any, stored: str, upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key=stored)
    def raw() -> Any:
        return make(numbered(3))

    definitions = definitions_of(upper, raw, root, others=[raw])
    execute(definitions, instance)
    assert result_of(root, "docs", "upper") == UPPER
    assert not list((root / "docs" / "upper").glob("*upstream*"))


def test_an_upstream_asset_may_be_given_by_its_key(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="dataops_io")
    def raw() -> list[dict[str, Any]]:
        return list(numbered(3))

    execute(definitions_of(upper, dg.AssetKey("raw"), root, others=[raw]), instance)
    assert result_of(root, "docs", "upper") == UPPER


@pytest.mark.slow
def test_an_asset_of_another_code_location_is_given_by_its_spec(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="dataops_io")
    def raw() -> list[dict[str, Any]]:
        return list(numbered(3))

    resources = {"dataops_io": DataOpsIOManager(dataops=resource_at(root))}
    dg.materialize([raw], resources=resources, instance=instance)
    execute(definitions_of(upper, dg.AssetSpec("raw"), root), instance)
    assert result_of(root, "docs", "upper") == UPPER


def test_all_partitions_of_an_upstream_asset_are_joined_in_their_order(
    upper: Any, root: Path, instance: dg.DagsterInstance
) -> None:
    @dg.asset(
        partitions_def=dg.StaticPartitionsDefinition(["2", "0", "1"]), io_manager_key="dataops_io"
    )
    def raw(context: dg.AssetExecutionContext) -> list[dict[str, Any]]:
        number = context.partition_key
        return [{"id": int(number), "text": f"text {number}"}]

    definitions = definitions_of(upper, raw, root, others=[raw])
    for key in ("0", "1", "2"):
        execute(definitions, instance, only=[["raw"]], partition_key=key)
    execute(definitions, instance, only=[["docs", "upper"]])
    assert result_of(root, "docs", "upper") == [UPPER[2], UPPER[0], UPPER[1]]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (r"C:\data\docs.jsonl", "docs"),
        (r"\\server\share\docs.jsonl", "docs"),
        ("C:/data/docs.jsonl", "docs"),
        (r"C:\data\docs.jsonl.gz", "docs"),
        (r"odd\name.jsonl", "odd_name"),
        ("docs.v2.jsonl", "docs_v2"),
    ],
)
def test_a_path_of_windows_gives_the_key_that_its_file_name_gives(path: str, name: str) -> None:
    assert source_asset(path, "corpus").key == dg.AssetKey(["corpus", name])
