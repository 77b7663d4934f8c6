import unicodedata

from dagster_dataops.library.analysis.character_sets import (
    PLAIN_PUNCTUATION,
    PUNCTUATION,
    SPECIAL_CHARACTERS,
    SYMBOLS_AND_SPACES,
    TERMINAL_PUNCTUATION,
    characters,
)


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
