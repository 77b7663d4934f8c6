from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.character_counts import CharacterCounter, ratio


@given(st.text())
def test_counts_are_those_of_a_loop(text):
    letters, members = CharacterCounter(str.isalpha), CharacterCounter.of("aé😀 \x00")

    assert letters.count(AnalyzedText(text)) == sum(one.isalpha() for one in text)
    assert members.count(AnalyzedText(text)) == sum(one in "aé😀 \x00" for one in text)


def test_lone_surrogates_are_characters():
    assert CharacterCounter.of("\ud800").count(AnalyzedText("a\ud800")) == 1


def test_a_ratio_over_nothing_is_zero():
    assert ratio(1, 0) == 0.0
    assert ratio(1, 4) == 0.25
