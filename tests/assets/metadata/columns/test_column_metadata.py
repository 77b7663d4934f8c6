"""The metadata of columns."""

from pathlib import Path

import dagster as dg

from dagster_dataops.assets.metadata.columns.column_metadata import column_metadata
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.pipelines.local_run import run_operator
from tests.assets.metadata.upstream import dataset
from tests.registries import OperatorRegistry

registry = OperatorRegistry(run_operator)


@registry("data.columns")
def upper(record: dict, input_key: str = "text", output_key: str = "up|per") -> dict:
    return {**record, output_key: record[input_key].upper()}


UPSTREAM = dg.AssetKey(["docs", "before"])


def test_the_table_shows_column_type_origin_and_note(tmp_path: Path) -> None:
    before = dataset(tmp_path, "before", {"id": 1, "text": "a", "gone": None})
    after = dataset(tmp_path, "after", {"id": 1, "text": "a", "up|per": "A"})
    metadata = column_metadata(upper(), [(UPSTREAM, before)], after)
    assert metadata["dagster_dataops/columns"].value.splitlines() == [
        "| column | type | from | note |",
        "| --- | --- | --- | --- |",
        "| id | integer | id | passed through |",
        "| text | string | text | passed through |",
        r"| up\|per | string | text | new |",
        "| gone |  | gone | dropped |",
        "",
        "_1 record_",
    ]
    assert [c.name for c in metadata["dagster/column_schema"].value.columns] == [
        "id",
        "text",
        "up|per",
    ]


def test_an_unreadable_result_has_no_columns_and_raises_no_error(tmp_path: Path) -> None:
    assert column_metadata(upper(), [], JsonlDataset(tmp_path / "gone.jsonl", 5)) == {}


def test_without_inputs_there_is_no_lineage(tmp_path: Path) -> None:
    metadata = column_metadata(upper(input_key="a"), [], dataset(tmp_path, "after", {"a": 1}))
    assert "dagster/column_lineage" not in metadata
    assert "dagster/column_schema" in metadata
