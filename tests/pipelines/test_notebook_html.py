"""What a notebook shows of datasets, pipelines, operators, reports and traces."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dagster_dataops import JsonlDataset, chain, config, data, diff, pipeline, versions
from dagster_dataops.errors import UnknownOperatorError

HOSTILE = "<script>alert(1)</script>"


def html_of(value: object) -> str:
    html: str = value._repr_html_()  # type: ignore[attr-defined]
    assert "<script" not in html
    return html


def rows(folder: Path, *texts: str) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": text, HOSTILE: 1}) + "\n" for text in texts))
    return path


def test_a_dataset_is_a_table_of_its_first_records(tmp_path: Path) -> None:
    html = html_of(JsonlDataset.of_file(rows(tmp_path, *map(str, range(30)), HOSTILE)))
    assert html.count("<tr>") == 11
    assert '<th scope="col">text</th>' in html
    assert "The first 10 records." in html


def test_columns_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "wide.jsonl"
    path.write_text(json.dumps({f"column{n}": None for n in range(25)}) + "\n")
    html = html_of(JsonlDataset.of_file(path))
    assert html.count("<td>null</td>") == 20
    assert "5 columns more." in html


def test_texts_of_records_are_shown_as_text(tmp_path: Path) -> None:
    assert "&lt;script&gt;" in html_of(JsonlDataset.of_file(rows(tmp_path, HOSTILE)))


def test_a_dataset_that_was_deleted_says_so(tmp_path: Path) -> None:
    path = rows(tmp_path, "a")
    dataset = JsonlDataset.of_file(path)
    path.unlink()
    assert "no such file" in html_of(dataset)


def test_a_pipeline_is_a_table_of_its_nodes_and_their_state(tmp_path: Path) -> None:
    with config.temporary(data_process_path=tmp_path):
        with pipeline("shown") as ppl:
            ppl.clean = data.text.Normalize()
            assert "incomplete" in html_of(ppl)
            ppl.unique = data.dedup.Exact()
        ppl([{"text": "a"}, {"text": "a"}])
        html = html_of(ppl)
    assert "<td>clean</td><td>unique</td><td>done, 1 row</td>" in html


def test_reports_versions_and_differences_are_short_texts(tmp_path: Path) -> None:
    with config.temporary(data_process_path=tmp_path):
        with pipeline("brief") as ppl:
            ppl.clean = data.text.Normalize(_keep_versions=1)
        first = ppl.materialize([{"text": "a"}])["clean"]
        ppl.materialize([{"text": f"{HOSTILE} \u00e4"}, {"text": "a"}])
        earlier, _ = versions(first.folder)
        difference = diff(first.folder)

    assert repr(first) == f"<report of clean: 1 record in, 1 out, in {first.folder}>"
    assert repr(earlier).startswith("<version 1  ")
    assert "1 record  " in repr(earlier)
    assert repr(difference).startswith("<difference of clean from 1 to current: 1 new, 0 gone")
    assert "&lt;script&gt;" in html_of(difference)


def test_a_group_is_a_table_of_its_operators() -> None:
    html = html_of(data.dedup)
    assert "<td>Exact</td><td>Keep the first record of each value" in html


def test_all_groups_are_a_table() -> None:
    assert "<td>dedup</td>" in html_of(data)
    assert "  dedup: " in repr(data)


@pytest.mark.parametrize(
    "operator", [data.dedup.Exact, data.dedup.Exact(input_key="url"), chain(data.text.Normalize())]
)
def test_an_operator_is_a_table_of_its_options(operator: object) -> None:
    assert '<th scope="col">option</th>' in html_of(operator)


def test_an_unknown_operator_is_still_an_error() -> None:
    with pytest.raises(UnknownOperatorError):
        _ = data.dedup.Exactly


NOTEBOOK = """
from dagster_dataops import chain, data_register, pipeline

@data_register("data.cell")
def mark(record: dict):
    return {**record, "mark": 1}

with pipeline("cells") as ppl:
    ppl.marked = {node}

@data_register("data.cell")
def mark(record: dict):
    return {**record, "mark": {value}}

print(ppl([{"text": "a"}]))
"""


@pytest.mark.parametrize("node", ["mark()", "chain(mark(), name='both')"])
@pytest.mark.parametrize("value", [1, 2])
def test_a_node_with_code_of_an_earlier_cell_is_named(
    tmp_path: Path, node: str, value: int
) -> None:
    code = tmp_path / "cells.py"
    code.write_text(NOTEBOOK.replace("{node}", node).replace("{value}", str(value)))
    ended = subprocess.run(
        [sys.executable, code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert not ended.returncode, ended.stderr
    assert ended.stdout == "[{'text': 'a', 'mark': 1}]\n"
    warned = "marked: runs the code of an earlier definition of data.cell.mark" in ended.stderr
    assert warned == (value == 2)
