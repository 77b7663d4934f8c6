"""Tests of formulas in CSV files."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import config, data
from dagster_dataops.datasets.exporters.csv_table import CsvTable
from tests.each import each
from tests.examples import at_most

_FORMULA = re.compile(r"[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]\d+([.,]\d+)*([eE][+-]?\d+)?%?\s*")


def _written(records: list[dict[str, Any]], root: Path, **options: Any) -> str:
    with config.temporary(data_process_path=root):
        path = data.export.Csv(root / "out.csv", **options)(records)
    return Path(path).read_bytes().decode()


def test_a_formula_is_written_as_it_is_unless_asked_otherwise(tmp_path: Path) -> None:
    assert _written([{"x": "=1+1"}], tmp_path) == "x\r\n=1+1\r\n"


CASES = [
    ("=1+1", "'=1+1"),
    ("+1+1", "'+1+1"),
    ("-1-1", "'-1-1"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("\uff1d1", "'\uff1d1"),
    ("\t=1", "'\t'=1"),
    ("\rx", "'\rx"),
    (" =1", " '=1"),
    ('"=1', "\"'=1"),
    ("a;=cmd|' /C calc'!A0", "a;'=cmd|' /C calc'!A0"),
    ("a,=1", "a,'=1"),
    ("a\n@b", "a\n'@b"),
    (["a", "=2"], '["a","\'=2"]'),
    *((one, one) for one in ("-5", "+5", "-5.5e3", "-1,000", "-5%", "a-b", "x = y", "1 - 2")),
    (-5, "-5"),
    (-0.5, "-0.5"),
    (None, ""),
    (True, "true"),
]


@each("case", CASES)
def test_what_a_spreadsheet_takes_for_a_formula_is_escaped(tmp_path: Path, case: Any) -> None:
    value, wanted = case
    text = _written([{"x": value}], tmp_path, escape_formulas=True)
    _, (cell,) = (row or [""] for row in csv.reader(io.StringIO(text, newline="")))
    assert cell == wanted


def test_names_of_columns_and_other_delimiters_are_escaped_too(tmp_path: Path) -> None:
    text = _written([{"=a": "b:=c"}], tmp_path, escape_formulas=True, delimiter=":")
    assert text == "'=a\r\n\"b:'=c\"\r\n"


@settings(max_examples=at_most(200))
@given(
    st.text(st.sampled_from("=+-@\t\r\n ;,|\"'a1.%\uff1d"), max_size=12), st.sampled_from(",;\t|")
)
def test_no_cell_begins_with_a_formula_whatever_the_delimiter(text: str, read_with: str) -> None:
    written = CsvTable(escape_formulas=True)._cell(text)
    assert not written.startswith(("\t", "\r", "\n"))
    for part in re.split(rf"[{read_with}\r\n]", written):
        begin = part.lstrip(" \"'")
        guarded = "'" in part[: len(part) - len(begin)]
        number = _NUMBER.fullmatch(re.split(r"[,;|\t]", begin)[0])
        assert guarded or not _FORMULA.match(begin) or number


@pytest.mark.parametrize("text", ["\t" * 100_000, ", " * 50_000, "-1" * 50_000, ",-1" * 50_000])
def test_long_texts_are_escaped_in_linear_time(text: str) -> None:
    CsvTable(escape_formulas=True)._cell(text)
