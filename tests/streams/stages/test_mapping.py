"""Functions that are called for each item."""

import pytest

from dagster_dataops import DataPipeline, read_sequence


def test_functions_that_change_items_never_change_the_source():
    def marked(record):
        record["seen"] = record.get("seen", 0) + 1
        record["inner"]["list"].append(1)
        return record

    records = [{"inner": {"list": []}}]
    stream = read_sequence(records).repeat(3).map(marked)
    once = {"inner": {"list": [1]}, "seen": 1}

    assert list(stream) == [once] * 3
    assert list(DataPipeline.constant({"inner": {"list": []}}).map(marked).take(2)) == [once] * 2
    assert records == [{"inner": {"list": []}}]


def test_a_filter_returns_true_or_false():
    assert list(read_sequence([1, 0, 2]).filter(lambda x: x)) == [1, 2]
    assert list(read_sequence([1]).filter(lambda x: None)) == []
    with pytest.raises(RuntimeError, match="must return True or False, not a list"):
        list(read_sequence([1]).filter(lambda x: [x]))
    kept = read_sequence([{"a": {"n": 1}}, {"a": {"n": 2}}]).filter(lambda n: n > 1, "a.n")
    assert list(kept) == [{"a": {"n": 2}}]
