import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def change(text, *options, **named):
    return data.text.Replace(*options, **named).forward({"text": text})["text"]


def test_patterns_are_replaced_in_order():
    assert change("a1 b22", r"\d+") == "a b"
    assert change("a1", r"(a)(\d)", r"\2\1") == "1a"
    assert change("ab", ["a", "b"], ["b", "c"]) == "cc"
    assert change("a.b", ".", "-", regex=False) == "a-b"
    assert change("a\nb", "a.b") == "a\nb"


@pytest.mark.parametrize("engine", ["re", "re2"])
def test_a_malformed_pattern_is_refused(engine):
    with pytest.raises(DefinitionError, match="no regular expression"):
        data.text.Replace("(", engine=engine)


def test_wrong_options_are_refused():
    with pytest.raises(DefinitionError, match="2 patterns and 1 replacement"):
        data.text.Replace(["a", "b"], ["c"])
    with pytest.raises(DefinitionError, match="engine"):
        data.text.Replace("a", engine="pcre")


@pytest.mark.cpu_timeout(60)
def test_re2_takes_linear_time():
    assert change("a" * 50_000 + "!", "(a|a)*(a|a)*b", engine="re2")[-1] == "!"
    assert change("a1", r"([a-z])(\d)", r"\2\1", engine="re2") == "1a"
    with pytest.raises(ValueError, match="lone surrogate at character 1"):
        change("a\ud800", "a", engine="re2")
