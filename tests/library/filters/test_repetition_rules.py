import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


@pytest.mark.parametrize(
    ("name", "options", "text", "expected"),
    [
        ("CharacterRepetition", {"ngram_size": 2}, "ababab", 3 / 5),
        ("CharacterRepetition", {}, "short", 0.0),
        ("WordRepetition", {"ngram_size": 1}, "A, a b c", 0.5),
        ("WordRepetition", {"ngram_size": 2}, "a b a b", 2 / 3),
        ("RepeatedLines", {}, "a\nb\n\na\na", 0.5),
        ("RepeatedLinesByChar", {}, "aa\nb\n\naa", 0.6),
        ("RepeatedParagraphs", {}, "a\n\nb\n\na\n\na", 0.5),
        ("RepeatedParagraphs", {}, "", 1.0),
        ("RepeatedParagraphsByChar", {}, "aa\n\nb\n\naa", 0.6),
        ("RepeatedParagraphsByChar", {}, "  ", 1.0),
        ("RepeatingTopNGrams", {}, "a b c a b", 6 / 9),
        ("RepeatingTopNGrams", {}, "a", 1.0),
        ("RepeatingDuplicateNGrams", {}, "a b c a b", 3 / 9),
        ("RepeatingDuplicateNGrams", {}, "a a a", 3 / 5),
    ],
)
def test_shares_of_repetition(name, options, text, expected):
    tagged = getattr(data.filters, name)(mode="tag", **options).forward({"text": text})

    assert [*tagged["stats"].values()] == [pytest.approx(expected)]


@pytest.mark.parametrize(
    "name", ["RepeatedLines", "RepeatedLinesByChar", "RepeatedParagraphsByChar"]
)
def test_a_text_without_parts_is_empty(name):
    assert getattr(data.filters, name)().forward({"text": "\n\n"}).reason == "empty"


def test_the_fraction_is_a_minimum_of_different_lines():
    keep, drop = {"text": "a\nb\nc\na"}, {"text": "a\na"}

    assert data.filters.RepeatedLines()([keep, drop]) == [keep]


@pytest.mark.parametrize(
    ("name", "option"),
    [("CharacterRepetition", "ngram_size"), ("RepeatingTopNGrams", "ngram_size")],
)
def test_sizes_below_one_are_refused(name, option):
    with pytest.raises(DefinitionError, match=f"'{option}' must be at least 1"):
        getattr(data.filters, name)(**{option: 0})
