"""Tests of the metadata that tell what differs from the result before."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline


@data_register("data.compared_assets", _concurrency_mode="single")
def sign(record: dict[str, Any], text: str = ".") -> Any:
    return [] if record["n"] == 3 and text == "?" else {**record, "text": text}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"n":{n}}}\n' for n in range(5)))
    return path


def _materialized(tmp_path: Path, source: Path, text: str, **settings: Any) -> dict[str, Any]:
    with pipeline("docs") as ppl:
        ppl.signed = sign(text=text, **settings)
    resource = DataOpsResource(root=str(tmp_path / "root"), keep_versions=1)
    defs = build_definitions(ppl, source=source, resource=resource)
    done = defs.resolve_implicit_global_asset_job_def().execute_in_process()
    *_, event = done.asset_materializations_for_node("docs__signed")
    return {key: value.value for key, value in event.metadata.items()}


def test_the_numbers_and_their_cause_are_on_the_page_of_the_asset(tmp_path, source):
    first = _materialized(tmp_path, source, "!")
    assert "dagster_dataops/rows_new" not in first

    found = _materialized(tmp_path, source, "?")

    names = ("rows_new", "rows_gone", "rows_changed")
    assert [found[f"dagster_dataops/{name}"] for name in names] == [0, 1, 4]
    text = found["dagster_dataops/difference"]
    assert "option text:" in text
    assert "dagster_dataops diff" in text

    again = _materialized(tmp_path, source, "?")
    assert "dagster_dataops/rows_new" not in again
    assert "equal to the one before" in again["dagster_dataops/notes"]
    history = tmp_path / "root/docs/signed/.history"
    assert [path.name for path in history.iterdir()] == ["1"]


@pytest.mark.slow
def test_an_operator_has_its_own_number_of_versions(tmp_path, source):
    for text in "!?.,":
        _materialized(tmp_path, source, text, _keep_versions=2)

    history = tmp_path / "root/docs/signed/.history"
    assert sorted(path.name for path in history.iterdir() if path.name[0] != ".") == ["2", "3"]
