import pytest

from dagster_dataops import data


def stats(name, text, **options):
    (value,) = (
        getattr(data.filters, name)(mode="tag", **options).forward({"text": text})["stats"].values()
    )
    return value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("AlphanumericRatio", "ab1 ", 0.75),
        ("AlphanumericRatio", "éß½ ", 0.75),
        ("AlphanumericRatio", "", 0.0),
        ("SpecialCharacterRatio", "a1 !😀", 0.8),
        ("SpecialCharacterRatio", "काम上", 0.0),
        ("SpecialCharacterRatio", "", 0.0),
        ("NonAlphaNumeric", "ab é", 0.5),
        ("NonAlphaNumeric", "", 1.0),
        ("Numbers", "1٢a½", 0.25),
        ("Urls", "see http://a.b/%20 now", 14 / 22),
        ("WhiteSpace", " \t\u00a0a", 0.5),
        ("Parentheses", "(a⟩", 2 / 3),
    ],
)
def test_shares_of_characters(name, text, expected):
    assert stats(name, text) == expected


def test_the_set_of_datajuicer_has_letters():
    assert stats("SpecialCharacterRatio", "काम上", character_set="datajuicer") == 0.5


@pytest.mark.parametrize(
    "name", ["NonAlphaNumeric", "Numbers", "Urls", "WhiteSpace", "Parentheses"]
)
def test_an_empty_text_is_dropped_as_empty(name):
    assert getattr(data.filters, name)().forward({"text": ""}).reason == "empty"


def test_the_limit_is_inclusive():
    keep, drop = {"text": "1" + "a" * 9}, {"text": "11" + "a" * 9}
    assert data.filters.Numbers(max_number_to_text_ratio=0.1)([keep, drop]) == [keep]
    assert data.filters.NonAlphaNumeric(max_ratio=0.0)([keep, {"text": "-"}]) == [keep]
