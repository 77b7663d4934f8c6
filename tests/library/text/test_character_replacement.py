import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def change(operator, text):
    return operator.forward({"text": text})["text"]


def test_each_space_becomes_one_space():
    operator = data.text.NormalizeWhitespace()

    assert change(operator, " a\u3000\u2009b\tc\u200bd\ne ") == "a  b c d\ne"
    assert change(operator, "\u200ba") == " a"
    assert change(data.text.NormalizeWhitespace(strip=False, collapse=True), " a \t b") == " a b"


def test_punctuation_becomes_ascii():
    operator = data.text.NormalizePunctuation()

    assert change(operator, "「中，文。」—…ok’s") == '"中,文." - ...ok\'s'
    assert change(operator, "１") == "１"
    assert change(data.text.NormalizePunctuation(compat=True), "１") == '"'
    with pytest.raises(DefinitionError, match="moses"):
        data.text.NormalizePunctuation(table="other")


def test_runs_of_newlines_are_shortened():
    assert change(data.text.CollapseNewlines(), "a\n\n\n\nb\n\nc") == "a\n\nb\n\nc"
    assert change(data.text.CollapseNewlines(), "a\r\n\r\n\r\nb") == "a\r\n\r\nb"
    assert change(data.text.CollapseNewlines(max_newlines=1), "a\n\nb") == "a\nb"
    assert change(data.text.CollapseNewlines(max_newlines=0), "a\n\nb") == "ab"
    with pytest.raises(DefinitionError, match="at least 0"):
        data.text.CollapseNewlines(max_newlines=-1)


def test_a_text_is_simplified_under_both_names():
    assert change(data.text.Simplify(), "Ça, 12!") == "ca 0"
    assert change(data.text.SimplifyText(), "Ça, 12!") == "ca 0"
