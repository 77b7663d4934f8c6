import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def signals_of(text, *names):
    (record,) = [data.stats.Signals(names).forward({"text": text})]
    return [record["stats"][name] for name in names]


def repeated(parts):
    """Return how many parts are equal to an earlier one, and their characters."""
    characters = sum(map(len, parts)) - sum(map(len, set(parts)))
    return len(parts) - len(set(parts)), characters


@given(st.text("ab \n\t", max_size=30))
def test_lines_and_paragraphs_are_split_as_by_patterns(text):
    runs, paragraphs = re.split("\n+", text), re.split("\n{2,}", text.strip())
    filled = [line for line in text.split("\n") if line.strip()]
    length, letters = len(text) or 1, len(text) - text.count("\n") or 1

    assert signals_of(text, "dup_line_frac", "dup_line_char_frac") == [
        repeated(runs)[0] / len(runs),
        repeated(runs)[1] / length,
    ]
    assert signals_of(text, "dup_para_frac", "dup_para_char_frac") == [
        repeated(paragraphs)[0] / len(paragraphs),
        repeated(paragraphs)[1] / length,
    ]
    assert signals_of(text, "char_dup_ratio") == [repeated(filled)[1] / letters]
    assert signals_of(text, "num_paragraphs") == [len(paragraphs) if text.strip() else 0]


def test_lines_are_numbered_without_an_empty_last_one():
    assert signals_of("a\n\nb\n", "num_lines") == [3]


WORDS = st.text("aB Σé1!,\n\t\r\x1c\u2003😀上ª1#-", max_size=40)
SPECIAL, MARKS = (
    "\t\n\r !#,-1\xaa\u2003\u4e0a\U0001f600",
    "\r\x1c!#,-",
)  # those of the characters above


@given(WORDS)
def test_refined_words_are_stripped_of_special_characters(text):
    words = [word.strip(SPECIAL) for word in re.split("[ \n\t]", text.lower())]
    counts = Counter(filter(None, words))
    number = counts.total()
    again = sum(count for count in counts.values() if count > 1)

    assert signals_of(text, "num_refined_words") == [number]
    repetition = data.filters.WordRepetition(ngram_size=1, mode="tag").forward({"text": text})
    assert [*repetition["stats"].values()] == [again / number if number > 1 else 0.0]


@given(WORDS)
def test_content_words_have_a_character_that_is_no_punctuation(text):
    words = text.split()
    content = [word for word in words if word.strip(MARKS)]
    with_letters = [word for word in words if any(map(str.isalpha, word))]

    names = ("num_content_words", "avg_content_word_length", "alpha_word_ratio")
    assert signals_of(text, *names) == [
        len(content),
        sum(map(len, content)) / len(content) if content else 0.0,
        len(with_letters) / len(words) if words else 0.0,
    ]
