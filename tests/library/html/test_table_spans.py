"""Tests of cells that span rows and columns, in ``html.Tables`` and ``html.ToMarkdown``."""

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DataOpsError
from tests.each import each


def tables(page):
    return data.html.Tables()([{"html": page}])[0]["tables"]


@pytest.mark.slow
@each(
    "case",
    [
        (
            "<tr><td rowspan=2>a<td colspan=2>b<tr><td>c<td>d<tr><td>x<td>y<td>z",
            [["a", "b", "b"], ["a", "c", "d"], ["x", "y", "z"]],
        ),
        (
            "<thead><tr><th rowspan=5>h<th>i</thead><tbody><tr><td>1<td>2</tbody>",
            [["h", "i"], ["1", "2"]],
        ),
        ("<tr><td>a<td rowspan=0>b<tr><td>c<tr><td>d", [["a", "b"], ["c", "b"], ["d", "b"]]),
        ("<tr><td>a<td>b<td rowspan=2>c<tr><td>d", [["a", "b", "c"], ["d", "", "c"]]),
        (
            "<tr><td colspan=0>a<td colspan=x>b<td rowspan=-1 colspan=' 2 '>c",
            [["a", "b", "c", "c"]],
        ),
        ("<tr><td rowspan=2>a<td>b</tr><tr></tr><tr><td>c", [["a", "b"], ["a"], ["c"]]),
        (
            "<tr><td rowspan=2 colspan=2>a<td>b<tr><td>c<tr><td>d",
            [["a", "a", "b"], ["a", "a", "c"], ["d"]],
        ),
    ],
)
def test_a_cell_is_in_all_its_rows_and_columns(case):
    rows, expected = case
    assert tables(f"<table>{rows}</table>") == [expected]


def test_a_table_in_a_cell_keeps_its_own_columns():
    page = "<table><tr><td rowspan=2>a<table><tr><td>i<td colspan=2>j</table><td>b<tr><td>c</table>"
    assert tables(page) == [[["a", "b"], ["a", "c"]], [["i", "j", "j"]]]


@pytest.mark.slow
def test_spans_do_not_fill_the_memory():
    page = "<table>" + ("<tr>" + "<td colspan=1000 rowspan=65000>x" * 100) * 300 + "</table>"
    with pytest.raises(DataOpsError, match="more than 1,000,000 cells"):
        data.html.Tables(_ignore_errors=False)([{"html": page}])


def test_columns_of_markdown_stay_columns():
    page = (
        "<table><tr><th>a</th><th>b</th><th>c</th></tr>"
        "<tr><td rowspan=2>1</td><td>2</td><td rowspan=3>3</td></tr>"
        "<tr><td>4</td></tr><tr><td colspan=2>5</td></tr></table>"
    )
    text = data.html.ToMarkdown()([{"html": page}])[0]["text"]
    rows = [line.replace(" ", "") for line in text.strip().splitlines()]
    assert rows == ["|a|b|c|", "|---|---|---|", "|1|2|3|", "||4||", "|5|||"]


def test_a_cell_of_markdown_ends_with_its_rows_although_a_row_between_is_short():
    page = (
        "<table><tr><th>a</th><th>b</th><th rowspan=2>c</th></tr>"
        "<tr><td>1</td></tr><tr><td>2</td><td>3</td><td>4</td></tr></table>"
    )
    text = data.html.ToMarkdown()([{"html": page}])[0]["text"]
    assert text.strip().splitlines()[-1].replace(" ", "") == "|2|3|4|"
