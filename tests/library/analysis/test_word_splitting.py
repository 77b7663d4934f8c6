import pickle

import pytest

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.word_splitting import ngrams, words_function


def test_whitespace_words_are_those_of_split():
    assert words_function("whitespace")(" a, b\u00a0c\n") == ["a,", "b", "c"]


def test_regex_words_take_each_chinese_character_alone():
    assert words_function("regex")("漢字 and カナ, x_1!") == ["漢", "字", "and", "カ", "ナ", "x_1"]


def test_a_function_is_returned_as_it_is():
    assert words_function(list) is list


def test_an_unknown_name_is_refused():
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

    def test_long_runs_of_marks_are_cut(self, split):
        assert len(split("(" * 1200)) == 1200

    def test_copies_are_equal_so_that_operators_share_results(self, split):
        assert pickle.loads(pickle.dumps(split)) == split == words_function("spacy")

    def test_an_unknown_language_is_refused(self, split):
        with pytest.raises(DefinitionError, match="no pipeline for language 'xyz'"):
            words_function("spacy", "xyz")
