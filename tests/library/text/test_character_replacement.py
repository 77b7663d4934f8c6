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


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("", ""),
        (" A\tb\n\nc ", "a b c"),
        ("It's (well-known), isn't it?", "it s well known isn t it"),
        ("1 22 3.5 1,000,000 v1.2.3 4th", "0 0 0 0 0 v0 0 0th"),
        ("Été à Łódź", "ete a łodz"),
        ("٣٫٥ kg", "0 kg"),
        ("a\u0301 \ufb01", "a \ufb01"),
        ("\u0301", ""),
        ("今天，早上", "今天 早上"),
        ("a\x00b\x85c", "a b c"),
        ("\ud800 A", "\ud800 a"),
    ],
)
def test_texts_lose_case_marks_and_values_of_numbers_under_both_names(text, simple):
    assert change(data.text.Simplify(), text) == simple
    assert change(data.text.SimplifyText(), text) == simple


def test_the_fast_path_for_ascii_equals_the_general_one():
    text = "".join(map(chr, range(128))) * 2 + "12.5, x"
    simplify = data.text.Simplify()

    assert change(simplify, text) == change(simplify, text + " é").removesuffix(" e")
