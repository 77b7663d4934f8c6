import re

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.stop_words import stop_words_of


@pytest.mark.parametrize(
    ("name", "options", "text", "expected"),
    [
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
    ],
)
def test_shares_of_words(name, options, text, expected):
    tagged = getattr(data.filters, name)(mode="tag", **options).forward({"text": text})

    assert [*tagged["stats"].values()] == [expected]


@pytest.mark.parametrize("name", ["CapitalWords", "SymbolsToWords", "WordsWithoutAlphabets"])
def test_a_text_without_words_is_empty(name):
    assert getattr(data.filters, name)().forward({"text": "\n"}).reason == "empty"


def test_texts_in_capital_letters_are_dropped():
    operator = data.filters.CapitalWords()

    assert operator.forward({"text": "MOSTLY IN CAPITALS, see"}).reason == "high_capital_word_ratio"
    assert operator.forward({"text": "HALF of IT is"}) == {"text": "HALF of IT is"}


def test_there_are_stop_words_of_twenty_languages():
    languages = re.findall("..", "arcsdadeelenesfifrhihuiditnlnoplptrusvtr")

    assert all(len(stop_words_of(language)) >= 50 for language in languages)
    with pytest.raises(DefinitionError, match="No stop words for language 'xx'"):
        data.filters.StopWordRatio(language="xx")
