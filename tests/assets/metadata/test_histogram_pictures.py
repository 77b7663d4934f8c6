"""Tests of the pictures of a summary."""

import re
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dagster_dataops import data
from dagster_dataops.assets.metadata.histogram_pictures import (
    SUMMARY,
    histogram,
    histogram_metadata,
)
from dagster_dataops.assets.metadata.markdown import INLINE_CHARACTERS
from dagster_dataops.datasets.writer import write_records

PICTURE = re.compile(r"!\[histogram\]\(data:image/svg\+xml;base64,([\w+/=]+)\)\n\n(.*)")


def summary_of(values: list[Any], **options: Any) -> dict[str, Any]:
    """Return the summary of a column with these values."""
    made = data.stats.Summary(["n"], **options)([{"n": value} for value in values])
    return made[0]["columns"]["n"]


def bars_of(text: str) -> list[tuple[int, int]]:
    """Return the left edge and the height of each bar."""
    found = PICTURE.fullmatch(text)
    assert found, text
    (path,) = ElementTree.fromstring(b64decode(found.group(1)))  # noqa: S314 - made here
    drawn = re.findall(r"M(\d+) 60v-(\d+)h\d+V60", path.attrib["d"])
    return [(int(left), int(height)) for left, height in drawn]


def test_each_bin_with_numbers_has_a_bar():
    text = histogram(summary_of([0, 0, 0, 0, 1, 9, 10], bins=10))
    assert bars_of(text) == [(0, 60), (24, 15), (216, 30)]
    assert text.endswith("\n\nfrom 0, median 0, mean 2.85714, 95 % 9.7, to 10")


def test_one_number_in_a_million_can_be_seen():
    column = summary_of([0, 1], bins=2)
    column["histogram"]["counts"] = [1, 1_000_000]
    assert bars_of(histogram(column)) == [(0, 1), (120, 60)]


@pytest.mark.parametrize("bins", [1, 20, 31, 1000])
def test_a_picture_is_short_enough_to_be_shown_on_the_asset_page(bins):
    values = [number * 1.2345678e-300 for number in range(bins + 1)] + [-1.7e308 / 10, 1.7e307]
    text = histogram(summary_of(values, bins=bins))
    assert len(text) < INLINE_CHARACTERS
    assert bars_of(text)
    full = summary_of([0, 1], bins=bins)
    full["histogram"]["counts"] = [10**6 + number for number in range(bins)]
    assert len(bars_of(histogram(full))) <= 30


def test_a_column_without_numbers_has_no_picture():
    assert histogram(summary_of(["a", None])) == ""


def test_each_column_with_numbers_is_an_entry(tmp_path: Path):
    columns = {"a.b": summary_of([1, 2]), "text": summary_of(["x"]), "*[c]*": summary_of([3])}
    made = write_records(tmp_path / "x.jsonl", [{"records": 2, "columns": columns}], "test")
    found = histogram_metadata(made, SUMMARY)
    assert list(found) == ["dagster_dataops/histogram_1", "dagster_dataops/histogram_2"]
    names = [value.md_str.partition("\n\n")[0] for value in found.values()]
    assert names == ["a.b", "\\*\\[c\\]\\*"]
    assert histogram_metadata(made, "dedup.Exact") == {}


@pytest.mark.parametrize("row", [{}, {"columns": 3}, {"columns": {"a": 3}}])
def test_a_result_that_is_no_summary_has_no_pictures(tmp_path: Path, row: dict[str, Any]):
    made = write_records(tmp_path / "x.jsonl", [row], "test")
    assert histogram_metadata(made, SUMMARY) == {}
