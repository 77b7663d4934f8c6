"""Signals of texts that are about repetition: pure functions of an `AnalyzedText`.

Those that count n-grams use numpy if it is installed; the results are the same without.
"""

from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from math import isqrt
from typing import TypeAlias

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText
from dagster_dataops.library.analysis.character_counts import ratio
from dagster_dataops.library.analysis.signals.line_signals import (
    double_newline_parts,
    filled_lines,
    newline_runs,
    paragraphs,
)
from dagster_dataops.library.analysis.signals.word_signals import refined_words
from dagster_dataops.library.analysis.window_hashes import (
    WordHashes,
    among,
    character_hashes,
    counts_of,
    hashable,
    numpy,
    repeated,
    word_hashes,
)
from dagster_dataops.library.analysis.word_splitting import Splitter, ngrams

Parts: TypeAlias = Callable[[AnalyzedText], list[str]]


# ---------------------------------------------------------------- lines and paragraphs


def duplicates(text: AnalyzedText, parts: Parts) -> tuple[int, int]:
    """Return the number of parts that are equal to an earlier one, and their characters."""
    all_parts = parts(text)
    distinct = set(all_parts)
    if len(distinct) == len(all_parts):
        return 0, 0
    return len(all_parts) - len(distinct), sum(map(len, all_parts)) - sum(map(len, distinct))


def dup_para_frac(text: AnalyzedText) -> float:
    """Return the share of paragraphs that repeat an earlier one."""
    return ratio(text.get(duplicates, paragraphs)[0], len(paragraphs(text)))


def dup_para_char_frac(text: AnalyzedText) -> float:
    """Return the share of characters in paragraphs that repeat an earlier one."""
    return ratio(text.get(duplicates, paragraphs)[1], len(text.text))


def dup_line_frac(text: AnalyzedText) -> float:
    """Return the share of lines, between runs of newlines, that repeat an earlier one."""
    return ratio(text.get(duplicates, newline_runs)[0], len(newline_runs(text)))


def dup_line_char_frac(text: AnalyzedText) -> float:
    """Return the share of characters in lines that repeat an earlier one."""
    return ratio(text.get(duplicates, newline_runs)[1], len(text.text))


def char_dup_ratio(text: AnalyzedText) -> float:
    """Return the share of characters, without newlines, in filled lines that repeat another."""
    characters = len(text.text) - text.text.count("\n")
    return ratio(text.get(duplicates, filled_lines)[1], characters)


def distinct_lines(text: AnalyzedText) -> float:
    """Return the share of filled lines that remain without repeated ones."""
    return _remaining(text.get(duplicates, filled_lines)[0], len(filled_lines(text)))


def distinct_line_chars(text: AnalyzedText) -> float:
    """Return the share of characters of filled lines that remain without repeated ones."""
    repeated = text.get(duplicates, filled_lines)[1]
    return _remaining(repeated, sum(map(len, filled_lines(text))))


def distinct_paragraphs(text: AnalyzedText) -> float:
    """Return the share of parts between pairs of newlines that remain without repeated ones."""
    parts = double_newline_parts(text)
    return _remaining(text.get(duplicates, double_newline_parts)[0], len(parts))


def distinct_paragraph_chars(text: AnalyzedText) -> float:
    """Return the share of characters of these parts that remain without repeated ones."""
    repeated = text.get(duplicates, double_newline_parts)[1]
    return _remaining(repeated, sum(map(len, double_newline_parts(text))))


def _remaining(repeated: int, total: int) -> float:
    return ratio(total - repeated, total)


# ---------------------------------------------------------------- word n-grams


def top_ngram_share(text: AnalyzedText, split: Splitter, size: int) -> float:
    """Return the share of characters in the occurrences of the most frequent n-gram of words.

    An n-gram counts with the spaces inside. Of several, the one that comes first counts.
    """
    top = text.get(top_ngram, split, size)
    if top is None:
        return 0.0
    start, count = top
    words = text.split(split)[start : start + size]
    return ratio((sum(map(len, words)) + size - 1) * count, len(text.text))


def top_ngram(text: AnalyzedText, split: Splitter, size: int) -> tuple[int, int] | None:
    """Return the index of the first word of the most frequent n-gram, and how often it occurs."""
    words = text.split(split)
    if len(words) < size:
        return None
    if not hashable(text.text):
        grams = list(zip(*(words[start:] for start in range(size)), strict=False))
        gram, count = Counter(grams).most_common(1)[0]
        return grams.index(gram), count
    hashes = text.get(_hashes, split).of_runs(size)
    distinct, counts = counts_of(hashes)
    count = int(counts.max())
    if count == 1:
        return 0, 1
    return int(among(hashes, distinct[counts == count]).argmax()), count


def _hashes(text: AnalyzedText, split: Splitter) -> WordHashes:
    return word_hashes(text.split(split))


def duplicate_ngram_share(text: AnalyzedText, split: Splitter, size: int) -> float:
    """Return the share of characters in n-grams of words that repeat an earlier one.

    Read from left to right; after a repeated n-gram, reading goes on behind it. N-grams are
    compared without the characters between words, which do not count.
    """
    words = text.split(split)
    if len(words) <= size or (size > 5 and not text.get(duplicate_ngram_share, split, size - 1)):
        return 0.0  # a longer n-gram that repeats contains a shorter one
    if hashable(text.text):
        characters = _repeated_in(text.get(_hashes, split), size)
    else:
        characters = _repeated_without_hashes(words, size)
    return ratio(characters, len(text.text))


def _repeated_in(hashes: WordHashes, size: int) -> int:
    """Return the characters in repeated n-grams."""
    of_runs = hashes.of_joined_runs(size)
    again = repeated(of_runs)
    if not len(again):
        return 0
    several = among(of_runs, again)
    seen: set[int] = set()
    characters = after = 0
    for start in several.nonzero()[0].tolist():
        if start < after:
            continue
        run = int(of_runs[start])
        if run in seen:
            after = start + size
            characters += hashes.length(start, after)
        else:
            seen.add(run)
    return characters


def _repeated_without_hashes(words: list[str], size: int) -> int:
    """Return the result of `_repeated_in`, computed without hashes."""
    seen: set[str] = set()
    characters = start = 0
    while start <= len(words) - size:
        gram = "".join(words[start : start + size])
        if gram in seen:
            characters += len(gram)
            start += size
        else:
            seen.add(gram)
            start += 1
    return characters


def removed_top_ngram_share(text: AnalyzedText, split: Splitter, size: int) -> float:
    """Return the share of characters that vanish with the most frequent n-gram, as one string.

    1.0 if there are fewer words than ``size``.
    """
    top = text.get(top_ngram, split, size)
    if top is None:
        return 1.0
    gram = " ".join(text.split(split)[top[0] : top[0] + size])
    return ratio(len(text.text) - len(text.text.replace(gram, "")), len(text.text))


def repeated_ngram_share(text: AnalyzedText, split: Splitter, size: int) -> float:
    """Return the share of characters in n-grams of words after the first of their kind.

    Words in several repeated n-grams count once, with the spaces between them. 1.0 if there are
    fewer words than ``size``.
    """
    words = text.split(split)
    if len(words) < size:
        return 1.0
    lengths = [0, *accumulate(map(len, words))]
    seen: set[str] = set()
    characters = counted = 0  # words before `counted` count already
    for start, gram in enumerate(ngrams(words, size)):
        if gram not in seen:
            seen.add(gram)
            continue
        first = max(start, counted)
        characters += lengths[start + size] - lengths[first]
        characters += min(start + size - first, size - 1)
        counted = start + size
    return ratio(characters, len(text.text))


def word_rep_ratio(text: AnalyzedText, size: int = 10) -> float:
    """Return the share of n-grams of refined words that occur more than once."""
    words = refined_words(text)
    total = len(words) - size + 1
    if total < 2:
        return 0.0
    if hashable(text.text):
        once = int((counts_of(word_hashes(words).of_runs(size))[1] == 1).sum())
    else:
        once = sum(count == 1 for count in Counter(ngrams(words, size)).values())
    return (total - once) / total


def char_rep_ratio(text: AnalyzedText, size: int = 10) -> float:
    """Return the share of the most frequent n-grams of characters among all.

    The most frequent are the square root of the number of different ones, without those that occur
    once.
    """
    total = len(text.text) - size + 1
    if total < 1:
        return 0.0
    distinct, repeated = _repeated_counts(text.text, size)
    most = min(isqrt(distinct), len(repeated))
    return sum(repeated[-most:]) / total if most else 0.0


def _repeated_counts(text: str, size: int) -> tuple[int, list[int]]:
    """Return the number of different n-grams of characters, and ascending counts above 1."""
    if numpy() is None:
        grams = Counter(text[at : at + size] for at in range(len(text) - size + 1))
        return len(grams), sorted(count for count in grams.values() if count > 1)
    counts = counts_of(character_hashes(text, size))[1]
    return len(counts), sorted(counts[counts > 1].tolist())
