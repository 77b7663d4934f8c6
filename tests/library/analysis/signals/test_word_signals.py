from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.character_sets import PUNCTUATION, SPECIAL_CHARACTERS
from dagster_dataops.library.analysis.signals import word_signals

texts = st.text("aB Σé1!,\n\t\r\x1c\u2003😀上ª1#-", max_size=40)


@given(texts)
def test_refined_words_are_stripped_of_special_characters(text):
    words = text.lower().replace("\n", " ").replace("\t", " ").split(" ")
    expected = []
    for word in words:
        kept = [at for at, one in enumerate(word) if one not in SPECIAL_CHARACTERS]
        expected += [word[kept[0] : kept[-1] + 1]] if kept else []

    assert word_signals.refined_words(AnalyzedText(text)) == expected
    assert word_signals.num_refined_words(AnalyzedText(text)) == len(expected)


@given(texts)
def test_content_words_have_a_character_that_is_no_punctuation(text):
    words = [word for word in text.split() if not PUNCTUATION.issuperset(word)]
    analyzed = AnalyzedText(text)

    assert word_signals.num_content_words(analyzed, str.split) == len(words)
    mean = sum(map(len, words)) / len(words) if words else 0.0
    assert word_signals.avg_content_word_length(analyzed, str.split) == mean
    letters = [word for word in text.split() if any(one.isalpha() for one in word)]
    share = len(letters) / len(text.split()) if text.split() else 0.0
    assert word_signals.alpha_word_ratio(analyzed, str.split) == share


def test_no_letter_is_punctuation():
    assert not any(map(str.isalpha, PUNCTUATION))
