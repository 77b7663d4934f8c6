import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError


def judged(operator, text: str | None) -> tuple[str | None, float]:
    found = operator.forward({"text": text})
    ((_, value),) = found["stats"].items()
    return found["drop_reason"], value


def test_sentences_are_counted() -> None:
    operator = data.filters.SentenceCount(min_sentences=2, max_sentences=3, mode="tag")
    assert judged(operator, "One. Two! Three?") == (None, 3)
    assert judged(operator, "One, two.") == ("low_num_sentences", 1)
    assert judged(operator, "One two. Three four. Five six. Seven eight.") == (
        "high_num_sentences",
        4,
    )
    assert judged(operator, " ") == ("empty", 0)
    lines = data.filters.SentenceCount(sentences="newline", mode="tag")
    assert judged(lines, "a\nb\n\nc") == (None, 3)


def test_different_words_are_counted() -> None:
    operator = data.filters.UniqueWordRatio(min_ratio=0.5, mode="tag")
    assert judged(operator, "a A b c") == (None, 0.75)
    assert judged(operator, "重复重复重复") == ("low_unique_word_ratio", 1 / 3)
    assert judged(operator, None) == ("empty", 0.0)


def test_the_longest_part_without_a_mark_is_measured() -> None:
    operator = data.filters.PunctuationGap(max_gap=3, mode="tag")
    assert judged(operator, "a b c, d e\nf g h") == (None, 3)
    assert judged(operator, "a b, c d e f") == ("high_punctuation_gap", 4)
    characters = data.filters.PunctuationGap(max_gap=3, unit="characters", mode="tag")
    assert judged(characters, "天地人。 山水火") == (None, 3)
    assert judged(characters, "天地人山") == ("high_punctuation_gap", 4)
    with pytest.raises(DefinitionError, match="unit"):
        data.filters.PunctuationGap(unit="lines")


def test_the_share_of_characters_is_measured() -> None:
    operator = data.filters.CharacterShare("{}", max_ratio=0.5, mode="tag")
    assert judged(operator, "{ab}") == (None, 0.5)
    assert judged(operator, "{}}") == ("high_character_share", 1.0)
    assert judged(data.filters.CharacterShare("a", min_ratio=1, mode="tag"), "ab")[1] == 0.5
    for options in ({"characters": ""}, {"characters": "a"}):
        with pytest.raises(DefinitionError):
            data.filters.CharacterShare(**options)


@given(st.text())
def test_characters_are_counted_as_by_a_loop(text: str) -> None:
    share = data.filters.CharacterShare("aé😀 \x00\ud800", min_ratio=0.0, mode="tag")
    letters = data.filters.AlphanumericRatio(mode="tag")
    length = len(text) or 1

    assert judged(share, text)[1] == sum(one in "aé😀 \x00\ud800" for one in text) / length
    assert judged(letters, text)[1] == sum(map(str.isalnum, text)) / length
    assert judged(share, "x\ud800")[1] == 0.5


def test_lines_of_code_are_counted() -> None:
    operator = data.filters.LinesContaining(mode="tag")
    code = "x => 1\nWindow.alert()\ndocument.a\n"
    assert judged(operator, code) == (None, 3)
    assert judged(operator, code + "text") == ("low_other_lines", 1)
    assert judged(operator, code + "\n\n\n" + "text\n" * 3) == (None, 3)
    with pytest.raises(DefinitionError, match="substrings"):
        data.filters.LinesContaining(["a", ""])
