"""Filters by one number of a text: of characters, lines, words or repetition."""

import re
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.stop_words import stop_words_of
from tests.each import each


def filter_of(name: str, **options: Any) -> Any:
    return getattr(data.filters, name)(**options)


@each(
    "case",
    [
        ("AlphanumericRatio", {}, "ab1 ", 0.75),
        ("AlphanumericRatio", {}, "éß½ ", 0.75),
        ("AlphanumericRatio", {}, "", 0.0),
        ("SpecialCharacterRatio", {}, "a1 !😀", 0.8),
        ("SpecialCharacterRatio", {}, "काम上", 0.0),
        ("SpecialCharacterRatio", {"character_set": "datajuicer"}, "काम上", 0.5),
        ("SpecialCharacterRatio", {}, "", 0.0),
        ("NonAlphaNumeric", {}, "ab é", 0.5),
        ("NonAlphaNumeric", {}, "", 1.0),
        ("Numbers", {}, "1٢a½", 0.25),
        ("Urls", {}, "see http://a.b/%20 now", 14 / 22),
        ("WhiteSpace", {}, " \t\u00a0a", 0.5),
        ("Parentheses", {}, "(a⟩", 2 / 3),
        ("Bullets", {}, "• a\n - b\n\n  ● c\nd", 0.5),
        ("Ellipsis", {}, "a...\nb Read More\nc […] \n\nd", 0.75),
        ("Punctuation", {}, 'a.\nb"\nc,\n\nd', 0.5),
        ("BoilerPlateString", {}, "a\n\nOur Terms of Use\n\nb\n\nWe use cookies", 0.5),
        ("BoilerPlateString", {}, "Lorem ipsum", 1.0),
        ("BoilerPlateString", {}, "Necessary cookies are absolutely essential for cakes.", 0.0),
        ("BoilerPlateString", {}, "", 0.0),
        ("SymbolsToWords", {}, "# a ... ####", 0.5),
        ("CommonEnglishWords", {}, "the the The with", 3),
        ("CommonEnglishWords", {"stop_at_false": True}, "the the The with", 2),
        ("WordsWithoutAlphabets", {}, "a 1 b2 -", 0.5),
        ("WordsWithoutAlphabets", {}, "Ⅷ ⓐ ½ é", 0.75),
        ("WordsWithoutAlphabets", {}, "ी ½", 0.5),
        ("CapitalWords", {}, "I like HTML5 and 5 ÉTÉ.", 0.5),
        ("CapitalWords", {}, "中文 И a", 1 / 3),
        ("StopWordRatio", {}, "The, cat AND dog", 0.5),
        ("StopWordRatio", {"language": "de"}, "Der Hund und der Hase", 0.6),
        ("StopWordRatio", {"stop_words": ["Cat"]}, "the cat", 0.5),
        ("FlaggedWords", {"words": ["Bad"]}, "bad, good BAD. ok", 0.5),
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
def test_the_number_of_a_text_is_measured(case: tuple[str, dict[str, Any], str, float]) -> None:
    name, options, text, expected = case
    tagged = filter_of(name, mode="tag", **options).forward({"text": text})

    assert [*tagged["stats"].values()] == [pytest.approx(expected)]


@each(
    "case",
    [
        (
            "",
            ["NonAlphaNumeric", "Numbers", "Urls", "WhiteSpace", "Parentheses"],
        ),
        (" \n", ["Bullets", "Ellipsis", "Punctuation"]),
        ("\n", ["CapitalWords", "SymbolsToWords", "WordsWithoutAlphabets"]),
        ("\n\n", ["RepeatedLines", "RepeatedLinesByChar", "RepeatedParagraphsByChar"]),
    ],
)
def test_a_text_with_nothing_to_measure_is_dropped_as_empty(case: tuple[str, list[str]]) -> None:
    text, names = case
    assert {filter_of(name).forward({"text": text}).reason for name in names} == {"empty"}


def test_limits_are_inclusive() -> None:
    keep, drop = {"text": "1" + "a" * 9}, {"text": "11" + "a" * 9}
    assert data.filters.Numbers(max_number_to_text_ratio=0.1)([keep, drop]) == [keep]
    assert data.filters.NonAlphaNumeric(max_ratio=0.0)([keep, {"text": "-"}]) == [keep]
    different, repeated = {"text": "a\nb\nc\na"}, {"text": "a\na"}
    assert data.filters.RepeatedLines()([different, repeated]) == [different]


def test_texts_in_capital_letters_are_dropped() -> None:
    operator = data.filters.CapitalWords()

    assert operator.forward({"text": "MOSTLY IN CAPITALS, see"}).reason == "high_capital_word_ratio"
    assert operator.forward({"text": "HALF of IT is"}) == {"text": "HALF of IT is"}


@pytest.mark.parametrize(("length", "expected"), [(34, 1.0), (33, 0.0), (35, 0.0)])
def test_a_long_notice_is_recognized_by_its_beginning_length_and_end(length, expected):
    beginning = "If you continue to browse this site without changing your cookie"
    operator = data.filters.BoilerPlateString(mode="tag")
    tagged = operator.forward({"text": f"x {beginning}{'s' * length}AcceptRead More y"})

    assert tagged["stats"] == {"boilerplate_ratio": expected}


def test_there_are_stop_words_of_twenty_languages() -> None:
    languages = re.findall("..", "arcsdadeelenesfifrhihuiditnlnoplptrusvtr")

    assert all(len(stop_words_of(language)) >= 50 for language in languages)
    with pytest.raises(DefinitionError, match="No stop words for language 'xx'"):
        data.filters.StopWordRatio(language="xx")


@pytest.mark.parametrize("name", ["CharacterRepetition", "RepeatingTopNGrams"])
def test_sizes_below_one_are_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="'ngram_size' must be at least 1"):
        filter_of(name, ngram_size=0)
