import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def test_all_signals_of_a_text_are_written():
    (record,) = data.stats.Signals()([{"text": "The cat and the dog.\nThe cat!"}])

    assert len(record["stats"]) == 52
    assert record["stats"]["num_words"] == 7
    assert record["stats"]["num_lines"] == 2
    assert record["stats"]["num_stop_words"] == 2
    assert record["stats"]["line_punct_ratio"] == 1.0
    assert record["stats"]["distinct_word_ratio"] == 6 / 7


def test_chosen_signals_are_added_to_those_that_are_there():
    operator = data.stats.Signals(["text_len"], input_key="a.b", stats_key="found")

    records = operator([{"a": {"b": "xyz"}, "found": {"lang": "en", "text_len": 1}}])

    assert records == [{"a": {"b": "xyz"}, "found": {"lang": "en", "text_len": 3}}]


def test_an_empty_text_has_all_signals():
    (record,) = data.stats.Signals()([{"text": None}])

    assert all(type(value) in {int, float} for value in record["stats"].values())


@pytest.mark.parametrize("signals", ["text_len", ["text_length"]])
def test_unknown_signals_are_refused(signals):
    with pytest.raises(DefinitionError, match="use 'all', or a list of text_len"):
        data.stats.Signals(signals)
