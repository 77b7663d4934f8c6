"""The fast ways to count n-grams agree with slow ones."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.signals import repetition_signals as signals
from dagster_dataops.library.analysis.window_hashes import (
    character_hashes,
    counts_of,
    numpy,
)

texts = st.lists(st.sampled_from(["a", "b", "cc", "dé", "\ud800"]), max_size=40).map(" ".join)
sizes = st.integers(1, 11)


def all_signals(text: str, size: int) -> list[float]:
    return [
        *(
            signal(AnalyzedText(text), str.split, size)
            for signal in (
                signals.top_ngram_share,
                signals.duplicate_ngram_share,
                signals.removed_top_ngram_share,
                signals.repeated_ngram_share,
            )
        ),
        signals.word_rep_ratio(AnalyzedText(text), size),
        signals.char_rep_ratio(AnalyzedText(text), size),
    ]


@given(texts, sizes)
def test_results_are_the_same_without_numpy(text: str, size: int) -> None:
    with_numpy = all_signals(text, size)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(signals, "numpy", lambda: None)
        patched.setattr(signals, "hashable", lambda _: False)
        assert all_signals(text, size) == with_numpy


@given(texts, sizes)
def test_duplicate_ngrams_are_skipped_from_left_to_right(text: str, size: int) -> None:
    words, seen = text.split(), set()
    characters = start = 0
    while start <= len(words) - size:
        gram = "".join(words[start : start + size])
        characters += len(gram) * (gram in seen)
        start += size if gram in seen else 1
        seen.add(gram)

    found = signals.duplicate_ngram_share(AnalyzedText(text), str.split, size)

    assert found == (characters / len(text) if text else 0.0)


@given(texts, sizes)
def test_words_in_several_repeated_ngrams_count_once(text: str, size: int) -> None:
    words, seen, counted, spaces = text.split(), set(), set(), set()
    for start in range(len(words) - size + 1):
        gram = tuple(words[start : start + size])
        if gram in seen:
            counted |= set(range(start, start + size))
            spaces |= set(range(start, start + size - 1))
        seen.add(gram)

    found = signals.repeated_ngram_share(AnalyzedText(text), str.split, size)

    if len(words) < size:
        assert found == 1.0
    else:
        characters = sum(len(words[one]) for one in counted) + len(spaces)
        assert found == (characters / len(text) if text else 0.0)


def test_of_equally_frequent_ngrams_the_first_counts() -> None:
    text = AnalyzedText("a b x cc dd x a b y cc dd")

    assert signals.top_ngram(text, str.split, 2) == (0, 2)


@given(st.text(max_size=60), st.integers(1, 12))
def test_equal_windows_have_equal_hashes_and_others_differ(text: str, size: int) -> None:
    if numpy() is None:
        pytest.skip("numpy is not installed")
    windows = [text[at : at + size] for at in range(len(text) - size + 1)]

    hashes = character_hashes(text, size).tolist()

    assert len(hashes) == len(windows)
    assert len(set(zip(windows, hashes, strict=True))) == len(set(windows)) == len(set(hashes))
    distinct, counts = counts_of(character_hashes(text, size))
    assert dict(zip(distinct.tolist(), counts.tolist(), strict=True)) == Counter(hashes)
