import pytest

from dagster_dataops import data
from dagster_dataops.errors import DatasetOperatorError, DefinitionError


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


def test_options_out_of_range_are_refused():
    with pytest.raises(DefinitionError, match="'bins' must be at least 1"):
        data.stats.Summary(bins=0)
