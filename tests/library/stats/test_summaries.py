import pytest

from dagster_dataops import data
from dagster_dataops.errors import DatasetOperatorError, DefinitionError
from dagster_dataops.records import encode


def test_signals_and_reasons_are_summed_up_by_default():
    records = [
        {"stats": {"a": 1}, "drop_reason": None},
        {"stats": {"a": 3, "b": 2}, "drop_reason": "short"},
        {"text": "x"},
    ]

    (summary,) = data.stats.Summary()(records)

    assert summary["records"] == 3
    assert list(summary["columns"]) == ["stats.a", "drop_reason", "stats.b"]
    assert summary["columns"]["stats.a"]["mean"] == 2.0
    assert summary["columns"]["drop_reason"]["top"] == [{"value": "short", "count": 1}]


def test_chosen_keys_may_be_selectors():
    records = [{"lang": "en", "tags": [{"n": 1}, {"n": 2}]}, {"lang": "de", "tags": []}, {}]

    (summary,) = data.stats.Summary(["lang", "tags[*].n"])(records)

    assert summary["columns"]["lang"]["count"] == 2
    assert summary["columns"]["lang"]["missing"] == 1
    assert summary["columns"]["tags[*].n"]["sum"] == 3


def test_no_records_have_an_empty_summary():
    assert data.stats.Summary()([]) == [{"records": 0, "columns": {}}]


def test_records_without_signals_are_refused_by_default():
    with pytest.raises(DatasetOperatorError, match="none of 2 records has signals in 'stats'"):
        data.stats.Summary()([{"a": 1}, {"a": 2}])
    assert data.stats.Summary()([{"drop_reason": None}]) != []


def summary_of(values, bins=4, top=2):
    records = ({"a": value} for value in values)
    (summary,) = data.stats.Summary(["a"], bins=bins, top=top).forward_batch_input(records)
    return summary["columns"]["a"]


def test_numbers_are_measured():
    summary = summary_of([1, 2, 2, 5, None])

    assert (summary["count"], summary["missing"]) == (4, 1)
    assert (summary["sum"], summary["mean"], summary["min"], summary["max"]) == (10, 2.5, 1, 5)
    assert abs(summary["std"] - 3**0.5) < 1e-12
    assert summary["percentiles"]["50"] == 2
    assert summary["histogram"] == {"edges": [1.0, 2.0, 3.0, 4.0, 5], "counts": [1, 2, 0, 1]}
    assert summary["top"] == [{"value": 2, "count": 2}, {"value": 1, "count": 1}]


def test_equal_numbers_are_one_bin():
    assert summary_of([3, 3])["histogram"] == {"edges": [3, 3], "counts": [2]}


def test_texts_and_truth_values_are_counted():
    summary = summary_of(["a", "b", "a", True, 1, ["x"]], top=9)

    assert summary["top"][0] == {"value": "a", "count": 2}
    assert {"value": True, "count": 1} in summary["top"]
    assert {"value": "['x']", "count": 1} in summary["top"]
    assert summary_of([None, None]) == {"count": 0, "missing": 2, "top": []}


def test_many_different_values_are_forgotten_with_a_known_error():
    summary = summary_of([f"v{number}" for number in range(30_000)] + ["often"] * 50)

    assert summary["top"][0] == {"value": "often", "count": 50}
    assert summary["top_error"] == 1


def test_what_is_too_large_to_be_calculated_is_missing():
    summary = summary_of([-1.7e308, 1.7e308, 1.7e308, 1.7e308], bins=2)

    assert (summary["mean"], summary["min"], summary["max"]) == (None, -1.7e308, 1.7e308)
    assert summary["histogram"]["counts"] == [4]
    encode(summary)


def test_options_out_of_range_are_refused():
    with pytest.raises(DefinitionError, match="'bins' must be at least 1"):
        data.stats.Summary(bins=0)
