from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.assets.metadata.columns.column_values import (
    INPUT_RECORDS,
    compared_records,
    inputs_to_see,
    remember,
    values_of,
)
from dagster_dataops.datasets.dataset import JsonlDataset
from tests.execution.helpers import write_input


def _result(path: Path, fingerprint: str, records: list[dict[str, Any]]) -> JsonlDataset:
    return replace(write_input(path, records), rows=len(records), fingerprint=fingerprint)


def test_the_sample_of_a_result_is_reused_for_the_next_step(tmp_path: Path) -> None:
    records = [{"id": n} for n in range(120)]
    result = _result(tmp_path / "result.jsonl", "xxh3:seen", records)
    remember(result, ["id", "rare"], records[:100])
    result.path.unlink()
    values = values_of([result], 100)
    assert values.records == records[:100]
    assert list(values.columns) == ["id", "rare"]
    assert not values.whole


def test_more_records_than_were_seen_are_read(tmp_path: Path) -> None:
    records = [{"id": n} for n in range(120)]
    result = _result(tmp_path / "result.jsonl", "xxh3:some", records)
    remember(result, ["id"], records[:100])
    values = values_of([result], 200)
    assert values.records == records
    assert values.whole


def test_changed_content_is_inspected_again(tmp_path: Path) -> None:
    remember(_result(tmp_path / "old.jsonl", "xxh3:old", [{"a": 1}]), ["a"], [{"a": 1}])
    values = values_of([_result(tmp_path / "new.jsonl", "xxh3:new", [{"b": 1}])])
    assert list(values.columns) == ["b"]


def test_files_of_unknown_content_are_never_remembered(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    remember(write_input(path, [{"a": 1}]), ["a"], [{"a": 1}])
    assert list(values_of([write_input(path, [{"b": 1}])]).columns) == ["b"]


@pytest.mark.parametrize(
    ("rows_in", "rows_out", "seen"),
    [(1000, 1000, 100), (1000, 900, 222), (1000, 100, 400), (1000, 4000, 100), (1000, 0, 400)],
)
def test_the_number_of_inspected_inputs_follows_from_the_first_results(
    tmp_path: Path, rows_in: int, rows_out: int, seen: int
) -> None:
    dataset = write_input(tmp_path / "file.jsonl", [{"n": n} for n in range(500)])
    result = replace(dataset, rows=rows_out)
    assert inputs_to_see(result, [replace(dataset, rows=rows_in)]) == seen
    assert inputs_to_see(result, [dataset]) == INPUT_RECORDS  # without a count
    if rows_out:
        compared = len(compared_records(result, [replace(dataset, rows=rows_in)]))
        assert compared * rows_in / rows_out <= seen
