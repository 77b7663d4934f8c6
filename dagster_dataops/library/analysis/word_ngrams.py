"""Word n-grams: consecutive words of a text."""

from collections.abc import Sequence


def ngrams(words: Sequence[str], size: int, separator: str = " ") -> list[str]:
    """Return each run of ``size`` consecutive words, joined; none if there are fewer words."""
    shifted = (words[start:] for start in range(size))
    return list(map(separator.join, zip(*shifted, strict=False)))
