"""Groups of failures and histograms of columns in metadata."""

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dagster_dataops import data
from dagster_dataops.assets.metadata.failure_summary import failure_groups, failure_table, failures
from dagster_dataops.assets.metadata.histogram_pictures import (
    SUMMARY,
    histogram,
    histogram_metadata,
)
from dagster_dataops.assets.metadata.markdown import INLINE_CHARACTERS
from tests.assets.helpers import dataset_of, write_jsonl


def error(line: int, exception: str, message: str, given: Any, **more: Any) -> dict[str, Any]:
    """Return an error row with the fields that matter here."""
    told = {"path": "in.jsonl", "line": line, "operator": "demo.x", "exception": exception}
    return {"index": line - 1, **told, "message": message, "input": given, **more}


def counts(*paths: Path) -> dict[str, int]:
    return {group.exception: group.records for group in failure_groups(paths)}


def test_failures_are_grouped_by_exception_the_most_frequent_first(tmp_path: Path) -> None:
    rows = [
        error(1, "KeyError", "'text'", {"id": 0}),
        error(2, "ValueError", "bad | value", {"id": 1}),
        error(5, "ValueError", "another", {"id": 4}),
    ]
    assert failures(write_jsonl(tmp_path / "errors.jsonl", rows)).splitlines() == [
        "| exception | records | first |",
        "| --- | --- | --- |",
        "| ValueError | 2 | line 2: bad \\| value |",
        "| KeyError | 1 | line 1: 'text' |",
        "",
        "_all of them: errors.jsonl_",
    ]


@pytest.mark.parametrize(
    ("message", "inline"),
    [
        *((("abcd " * 80)[: length - 1] + ".", length <= 90) for length in (10, 70, 90, 100, 390)),
        (f"no such file, {'x' * 40}.jsonl", False),
        (f"/data/{'long folder/' * 10}a.jpg: cannot be decoded; replace the file", False),
    ],
)
def test_a_message_is_whole_inline_or_in_a_window(
    message: str, inline: bool, tmp_path: Path
) -> None:
    text = failures(write_jsonl(tmp_path / "errors.jsonl", [error(1, "KeyError", message, {})]))
    assert f"line 1: {message} |" in text
    assert (len(text) < INLINE_CHARACTERS) is inline


def test_every_row_of_a_long_file_is_counted(tmp_path: Path) -> None:
    rows = [error(n, "Odd" if n % 2 else "Even", f"m {n}", {}) for n in range(5001)]
    assert counts(write_jsonl(tmp_path / "errors.jsonl", rows)) == {"Even": 2501, "Odd": 2500}


@pytest.mark.parametrize(
    "path",
    ['a","exception":"Wrong', ',"exception":"Wrong"', '\\","exception":"Wrong', '\\\\",'],
)
def test_nothing_in_a_path_passes_for_an_exception(path: str, tmp_path: Path) -> None:
    row = error(1, "Right", 'it said ,"exception":"Wrong"', {"exception": "Wrong"})
    found = counts(write_jsonl(tmp_path / "errors.jsonl", [{**row, "path": path}]))
    assert found == {"Right": 1}


def test_an_error_file_in_another_json_style_is_read(tmp_path: Path) -> None:
    path = tmp_path / "errors.jsonl"
    path.write_text(json.dumps(error(1, "KeyError", "m", {})) + "\n")  # with spaces
    assert counts(path) == {"KeyError": 1}


def test_examples_differ_in_their_message_and_are_few(tmp_path: Path) -> None:
    rows = [error(n, "ValueError", f"message {n // 10}", {"n": n}) for n in range(200)]
    (group,) = failure_groups([write_jsonl(tmp_path / "errors.jsonl", rows)])
    assert [(e.line, e.message) for e in group.examples] == [
        (0, "message 0"),
        (10, "message 1"),
        (20, "message 2"),
    ]


def test_examples_are_cut_and_on_one_line(tmp_path: Path) -> None:
    row = error(1, "ValueError", "one\ntwo " + "x" * 10_000, {"text": "y" * 10_000})
    (group,) = failure_groups([write_jsonl(tmp_path / "errors.jsonl", [row])])
    assert group.examples[0].message.startswith("one two xxx")
    assert (len(group.examples[0].message), len(group.examples[0].input)) == (400, 160)


def test_kinds_without_end_are_counted_together(tmp_path: Path) -> None:
    rows = [error(n, f"Error{n}", "m", {}) for n in range(1000)]
    found = counts(write_jsonl(tmp_path / "errors.jsonl", rows))
    assert found["others"] == 950
    assert sum(found.values()) == 1000


def test_several_files_are_counted_together(tmp_path: Path) -> None:
    one = write_jsonl(tmp_path / "one.jsonl", [error(1, "A", "m", {}), error(2, "B", "m", {})])
    other = write_jsonl(tmp_path / "other.jsonl", [error(1, "A", "n", {})])
    assert counts(one, other) == {"A": 2, "B": 1}


def test_the_table_has_a_row_an_example_and_counts_each_exception_once(tmp_path: Path) -> None:
    rows = [error(3, "KeyError", "'a'", {"b": 1}), error(4, "KeyError", "'c'", {})]
    table = failure_table(failure_groups([write_jsonl(tmp_path / "errors.jsonl", rows)]))
    assert [record.data for record in table.records] == [
        {"exception": "KeyError", "records": 2, "line": 3, "message": "'a'", "input": '{"b":1}'},
        {"exception": "KeyError", "records": None, "line": 4, "message": "'c'", "input": "{}"},
    ]


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
    made = dataset_of(tmp_path / "x.jsonl", [{"records": 2, "columns": columns}])
    found = histogram_metadata(made, SUMMARY)
    assert list(found) == ["dagster_dataops/histogram_1", "dagster_dataops/histogram_2"]
    names = [value.md_str.partition("\n\n")[0] for value in found.values()]
    assert names == ["a.b", "\\*\\[c\\]\\*"]
    assert histogram_metadata(made, "dedup.Exact") == {}


@pytest.mark.parametrize("row", [{}, {"columns": 3}, {"columns": {"a": 3}}])
def test_a_result_that_is_no_summary_has_no_pictures(tmp_path: Path, row: dict[str, Any]):
    made = dataset_of(tmp_path / "x.jsonl", [row])
    assert histogram_metadata(made, SUMMARY) == {}


def test_lines_of_an_error_file_that_were_edited_are_a_group(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "errors.jsonl", [error(1, "KeyError", "'text'", {"id": 0})])
    path.write_bytes(path.read_bytes() + b"\n" + b"null\n" + b'{"line": 3}\n' + b"[1\n")
    assert counts(path) == {"(a line that is no record)": 4, "KeyError": 1}
    assert "KeyError" in failures(path)
    assert failure_table(failure_groups([path]))
