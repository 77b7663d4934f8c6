"""The parts of texts that operators share: words, characters, and what was computed of a text."""

import pickle
import threading
import unicodedata

import pytest

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText, analyzed
from dagster_dataops.library.analysis.character_sets import (
    PLAIN_PUNCTUATION,
    PUNCTUATION,
    SPECIAL_CHARACTERS,
    SYMBOLS_AND_SPACES,
    TERMINAL_PUNCTUATION,
    characters,
)
from dagster_dataops.library.analysis.word_splitting import ngrams, words_function


def test_a_function_is_called_once():
    calls = []
    text = AnalyzedText("a b")

    def count(given):
        calls.append(given.text)
        return len(given.text)

    assert text.get(count) == text.get(count) == 3
    assert text.split(str.split) is text.split(str.split)
    assert calls == ["a b"]


def test_equal_texts_share_their_analysis_until_another_comes():
    first = analyzed("a" * 1000)

    assert analyzed("a" * 999 + "a") is first
    assert analyzed("b") is not first
    assert analyzed("a" * 1000) is not first


def test_long_texts_are_not_kept():
    text = "a" * 1_000_001

    assert analyzed(text) is not analyzed(text)


def test_threads_have_analyses_of_their_own():
    here, there = analyzed("a"), []
    thread = threading.Thread(target=lambda: there.append(analyzed("a")))
    thread.start()
    thread.join()

    assert there[0] is not here


def test_ranges_are_hexadecimal_and_inclusive():
    assert characters("61-63 7a") == frozenset("abcz")


def test_sizes():
    assert len(TERMINAL_PUNCTUATION) == 159
    assert len(PLAIN_PUNCTUATION) == 129
    assert len(PUNCTUATION) == 281
    assert len(SPECIAL_CHARACTERS) == 1641


def test_members():
    assert frozenset("!#…。「»\x00\x9f") <= PUNCTUATION
    assert PUNCTUATION.isdisjoint("\t\n aé")
    assert not any(map(str.isalpha, PUNCTUATION))
    assert frozenset(" \t\n19!😀☎上\u093e") <= SPECIAL_CHARACTERS
    assert frozenset(".?!।؟") <= TERMINAL_PUNCTUATION


def test_symbols_and_spaces_have_no_letters_or_marks_but_one_that_is_an_emoji():
    letters = {one for one in SYMBOLS_AND_SPACES if unicodedata.category(one)[0] in "LM"}

    assert letters == {"\N{INFORMATION SOURCE}"}


def test_words_are_split_by_name_or_by_a_function():
    assert words_function("whitespace")(" a, b\u00a0c\n") == ["a,", "b", "c"]
    assert words_function("regex")("漢字 and カナ, x_1!") == ["漢", "字", "and", "カ", "ナ", "x_1"]
    assert words_function(list) is list
    with pytest.raises(DefinitionError, match="use whitespace, regex"):
        words_function("space")


def test_ngrams_are_runs_of_words():
    assert ngrams(["a", "b", "c", "d"], 3) == ["a b c", "b c d"]
    assert ngrams(["a", "b"], 2) == ["a b"]
    assert ngrams(["a"], 2) == ngrams([], 1) == []


class TestSpacy:
    @pytest.fixture
    def split(self):
        pytest.importorskip("spacy")
        return words_function("spacy")

    def test_marks_are_words(self, split):
        assert split("Yes, it's \n\n fine.") == ["Yes", ",", "it", "'s", "fine", "."]

    def test_lone_surrogates_are_replaced(self, split):
        assert split("a \ud800 b") == ["a", "\ufffd", "b"]

    def test_empty_text_has_no_words(self, split):
        assert split("") == []

    @pytest.mark.slow
    def test_long_runs_of_marks_are_cut(self, split):
        assert len(split("(" * 1200)) == 1200

    def test_copies_are_equal_so_that_operators_share_results(self, split):
        assert pickle.loads(pickle.dumps(split)) == split == words_function("spacy")

    def test_an_unknown_language_is_refused(self, split):
        with pytest.raises(DefinitionError, match="no pipeline for language 'xyz'"):
            words_function("spacy", "xyz")
