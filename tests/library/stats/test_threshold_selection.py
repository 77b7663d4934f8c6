from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

RECORDS = [{"stats": {"n": number}} for number in range(101)]


def numbers(records):
    return [record["stats"]["n"] for record in records]


def test_percentiles_are_inclusive():
    operator = data.stats.Threshold("stats.n", min_percentile=5, max_percentile=10)

    assert numbers(operator(RECORDS)) == [5, 6, 7, 8, 9, 10]


def test_sigma_is_a_distance_from_the_mean():
    records = [{"stats": {"n": number}} for number in [10, 11, 9, 10, 10, 11, 9, 1000]]

    assert numbers(data.stats.Threshold("stats.n", sigma=2)(records)) == [10, 11, 9, 10, 10, 11, 9]


@pytest.mark.parametrize("keep_missing", [False, True])
def test_records_without_a_number_are_dropped_unless_kept(keep_missing):
    records = [{"stats": {"n": 1}}, {"stats": {"n": None}}, {}]
    operator = data.stats.Threshold("stats.n", sigma=3, keep_missing=keep_missing)

    assert operator(records) == (records if keep_missing else records[:1])


def test_no_numbers_are_no_error():
    assert data.stats.Threshold("n", sigma=1)([{"n": None}, {}]) == []


def test_a_value_that_is_no_number_is_an_error_of_its_record(root):
    assert data.stats.Threshold("n", sigma=9)([{"n": 1}, {"n": "2"}, {"n": True}]) == [{"n": 1}]
    (path,) = root.rglob("*_error.jsonl")
    assert [("is no number" in line) for line in path.read_text().splitlines()] == [True, True]


def test_more_numbers_than_memory_holds_are_read_from_a_file(tmp_path: Path) -> None:
    sketches = map(float, range(200_001))
    kept = list(data.stats.Threshold("n", max_percentile=50).keep(sketches, tmp_path))

    assert kept == sorted(kept, reverse=True)
    assert len(kept) == 200_001
    assert sum(kept) == pytest.approx(100_001, abs=200)


def test_invalid_options_are_refused():
    with pytest.raises(DefinitionError, match="give min_percentile"):
        data.stats.Threshold("n")
    with pytest.raises(DefinitionError, match="between 0 and 100"):
        data.stats.Threshold("n", min_percentile=101)
    with pytest.raises(DefinitionError, match="may select several"):
        data.stats.Threshold("n[*]", sigma=1)
