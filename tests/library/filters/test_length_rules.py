import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def stats(operator, text):
    return operator.forward({"text": text})["stats"]


def test_white_space_counts_in_lengths():
    assert stats(data.filters.TextLength(mode="tag"), " a\n") == {"text_len": 3}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 3),
        ({"strip": None}, 5),
        ({"preset": "nemo"}, 5),
        ({"words": "regex"}, 3),
        ({"words": "regex", "strip": None}, 4),
        ({"words": str.splitlines}, 1),
    ],
)
def test_the_option_words_chooses_the_splitter(options, expected):
    text = "One, 2 -- three four"

    assert stats(data.filters.WordCount(mode="tag", **options), text) == {"num_words": expected}


def test_the_preset_of_nemo_has_limits_of_its_own():
    few, many = {"text": "a " * 49}, {"text": "a " * 50}

    assert data.filters.WordCount(preset="nemo")([few, many]) == [many]
    assert data.filters.WordCount(preset="nemo", min_words=49, max_words=49)([few, many]) == [few]
    with pytest.raises(DefinitionError, match="'preset' must be one of 'datajuicer', 'nemo'; got"):
        data.filters.WordCount(preset="dolma")


def test_line_ends_count_in_the_average_but_not_in_the_maximum():
    text = "abc\nabcdefg\n"

    assert stats(data.filters.AverageLineLength(mode="tag"), text) == {"avg_line_length": 6.0}
    assert stats(data.filters.MaximumLineLength(mode="tag"), text) == {"max_line_length": 7}


@pytest.mark.parametrize("name", ["MeanWordLength", "LongWord"])
def test_a_text_without_words_is_empty(name):
    operator = getattr(data.filters, name)(mode="tag", words="regex")

    assert operator.forward({"text": " !\n"})["drop_reason"] == "empty"


def test_lengths_of_words():
    assert data.filters.MeanWordLength()([{"text": "a bb"}, {"text": "aaa bb aaaa"}]) == [
        {"text": "aaa bb aaaa"}
    ]
    assert data.filters.LongWord(max_word_length=3)([{"text": "aaa"}, {"text": "aaaa"}]) == [
        {"text": "aaa"}
    ]
