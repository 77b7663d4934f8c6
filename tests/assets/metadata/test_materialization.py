"""Tests of the metadata of a materialization as Markdown, with any record content escaped."""

import re
from pathlib import Path

import pytest

from dagster_dataops.assets.metadata.materialization import dataset_metadata, preview
from dagster_dataops.datasets.dataset import JsonlDataset
from tests.assets.helpers import write_jsonl

HOSTILE = [
    "a | b",
    "`code`",
    "<img src=x onerror=alert(1)>",
    "![tracker](http://example.org/x.png)",
    "[link](http://example.org)",
    "*bold* _italic_ ~gone~",
    "&lt;",
    "back\\slash | pipe",
    "# heading",
]


def cells_of(table: str) -> list[list[str]]:
    """Return the cells of a Markdown table as shown, without the line below the header."""
    rows = [line.removeprefix("| ").removesuffix(" |") for line in table.splitlines()]
    split = [re.split(r"(?<!\\)(?:\\\\)*\|", row) for row in rows]
    return [[re.sub(r"\\(.)", r"\1", c.strip()) for c in r] for r in [split[0], *split[2:]]]


def test_a_preview_is_a_markdown_table() -> None:
    assert preview([{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]).splitlines() == [
        "| id | text |",
        "| --- | --- |",
        "| 1 | a |",
        "| 2 | b |",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_cells_and_columns_show_the_content_of_records(text: str) -> None:
    table = preview([{text: text, "next": "x"}])
    assert cells_of(table) == [[text, "next"], [text, "x"]]
    live = re.sub(r"\\.", "", "\n".join(table.splitlines()[2:]))  # without escaped characters
    assert not re.search(r"[`*~<>&!\[\]#]", live)


def test_line_ends_do_not_end_a_row() -> None:
    assert len(preview([{"text": "one\n\ntwo\r\nthree"}]).splitlines()) == 3


def test_long_values_and_many_columns_are_cut() -> None:
    table = preview([{f"c{number}": "x" * 1000 for number in range(12)}])
    assert cells_of(table.split("\n\n")[0])[1] == ["x" * 120 + "..."] * 8
    assert table.endswith("_and 4 more columns_")


def test_a_missing_key_is_an_empty_cell_and_null_is_null() -> None:
    table = preview([{"a": None}, {"b": [1, {"c": 2}]}])
    assert cells_of(table)[1:] == [["null", ""], ["", '[1,{"c":2}]']]


def test_an_empty_result_is_reported_as_empty() -> None:
    assert preview([]) == "_no rows_"


def test_a_file_that_is_not_jsonl_still_has_metadata(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text("no json\n{}\n")
    metadata = dataset_metadata(JsonlDataset.of_file(path))
    assert metadata["dagster/size_bytes"] == 11
    assert "line 1" in metadata["dagster_dataops/preview"].md_str
    assert "dagster/row_count" not in metadata


def test_rows_of_a_partition_are_not_called_rows_of_the_asset(tmp_path: Path) -> None:
    dataset = JsonlDataset(write_jsonl(tmp_path / "r.jsonl", [{"a": 1}]), 8, 1)
    assert dataset_metadata(dataset)["dagster/row_count"] == 1
    metadata = dataset_metadata(dataset, "2024-01-01")
    assert metadata["dagster/partition_row_count"] == 1
    assert "dagster/row_count" not in metadata
