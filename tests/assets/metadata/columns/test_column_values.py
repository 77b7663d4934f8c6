from dataclasses import replace
from pathlib import Path

import pytest

from dagster_dataops.assets.metadata.columns.column_values import (
    INPUT_RECORDS,
    compared_values,
    inputs_to_see,
    values_of,
)
from tests.execution.helpers import write_input


def test_columns_that_only_later_records_have_are_known_without_values(tmp_path: Path) -> None:
    records = [{"id": n} if n < 119 else {"rare": n} for n in range(120)]
    part = replace(write_input(tmp_path / "file.jsonl", records), rows=len(records))
    some = values_of([part], 100)
    assert some.values == {"id": set(range(100)), "rare": set()}
    assert not some.whole
    every = values_of([part], 200)
    assert every.values == {"id": set(range(119)), "rare": {119}}
    assert every.whole


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
        compared = len(compared_values(result, [replace(dataset, rows=rows_in)])["n"])
        assert compared * rows_in / rows_out <= seen
