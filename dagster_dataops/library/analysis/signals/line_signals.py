"""Signals of texts that are about lines and paragraphs: pure functions of an `AnalyzedText`."""

import re
from collections.abc import Callable
from typing import Final

from dagster_dataops.library.analysis.analyzed_text import AnalyzedText, shared
from dagster_dataops.library.analysis.character_counts import ratio
from dagster_dataops.library.analysis.character_sets import TERMINAL_PUNCTUATION

BULLETS: Final = ("•", "-")
"""The bullets of the Gopher rules."""

_ROUND_BULLETS: Final = tuple("•‣⁃⁌⁍∙○●◘◦⦾⦿")
_ELLIPSES: Final = ("...", "…")
_ELLIPSIS_MARKS: Final = ("...", "[...]", "…", "(...)", "[…]", "-»", "read more..", "read more")
_END_MARKS: Final = (".", "?", "!", '"', "'")
# The last three are notices that many sites show in the same words: beginning, length and end.
POLICY: Final = re.compile(
    "terms of use|privacy policy|cookie policy|uses cookies|privacy overview|use of cookies|"
    "use cookies|privacy & cookies policy|privacy and cookies policy|"
    r"necessary cookies are absolutely essential.{175}any personal information\.|"
    r"any cookies that may not be particularly necessary.{228}cookies on your website\.|"
    "if you continue to browse this site without changing your cookie.{34}acceptread more"
)
"""Phrases of notices about cookies and terms of use, in lower case."""


def text_lines(text: AnalyzedText) -> list[str]:
    """Return the lines of a text by `str.splitlines`."""
    return text.split(str.splitlines)


@shared
def filled_lines(text: str) -> list[str]:
    """Return the parts between newlines that are not blank."""
    return [line for line in text.split("\n") if line and not line.isspace()]


@shared
def newline_runs(text: str) -> list[str]:
    """Return the parts of a text between runs of newlines."""
    parts = [part for part in text.split("\n") if part]
    if not text or text[0] == "\n":
        parts.insert(0, "")
    if text.endswith("\n"):
        parts.append("")
    return parts


@shared
def paragraphs(text: str) -> list[str]:
    """Return the parts of a stripped text between blank lines."""
    parts = [part.lstrip("\n") for part in text.strip().split("\n\n")]
    return [part for part in parts if part] or [""]


@shared
def double_newline_parts(text: str) -> list[str]:
    """Return the parts of a text between pairs of newlines."""
    return text.split("\n\n")


def num_lines(text: AnalyzedText) -> int:
    """Return the number of lines."""
    return len(text_lines(text))


def num_paragraphs(text: AnalyzedText) -> int:
    """Return the number of paragraphs between blank lines."""
    return len(paragraphs(text)) if text.text.strip() else 0


def avg_line_length(text: AnalyzedText) -> float:
    """Return the number of characters, with line ends, per line."""
    return ratio(len(text.text), len(text_lines(text)))


def max_line_length(text: AnalyzedText) -> int:
    """Return the number of characters of the longest line."""
    return max(map(len, text_lines(text)), default=0)


def bullet_line_ratio(text: AnalyzedText, bullets: tuple[str, ...] = BULLETS) -> float:
    """Return the share of lines that start with a bullet, after white space."""
    lines = text_lines(text)
    if not any(bullet in text.text for bullet in bullets):
        return 0.0
    return ratio(sum(line.lstrip().startswith(bullets) for line in lines), len(lines))


def ellipsis_line_ratio(text: AnalyzedText) -> float:
    """Return the share of lines that end in an ellipsis, before white space."""
    lines = text_lines(text)
    if not any(mark in text.text for mark in _ELLIPSES):
        return 0.0
    return ratio(sum(line.rstrip().endswith(_ELLIPSES) for line in lines), len(lines))


def round_bullet_ratio(text: AnalyzedText) -> float:
    """Return the share of filled lines that start with a round bullet."""
    return _share_of_lines(text, lambda line: line.startswith(_ROUND_BULLETS))


def ellipsis_mark_ratio(text: AnalyzedText) -> float:
    """Return the share of filled lines that end in an ellipsis or ``read more``."""
    return _share_of_lines(text, lambda line: line.lower().endswith(_ELLIPSIS_MARKS))


def no_end_mark_ratio(text: AnalyzedText) -> float:
    """Return the share of filled lines that do not end in ``. ? ! " '``."""
    return _share_of_lines(text, lambda line: not line.endswith(_END_MARKS))


def _share_of_lines(text: AnalyzedText, test: Callable[[str], bool]) -> float:
    lines = filled_lines(text)
    return ratio(sum(test(line.strip()) for line in lines), len(lines))


def line_punct_ratio(text: AnalyzedText) -> float:
    """Return the share of filled lines that end, unstripped, in a mark that ends a sentence."""
    lines = filled_lines(text)
    return ratio(sum(line[-1] in TERMINAL_PUNCTUATION for line in lines), len(lines))


def line_end_ratio(text: AnalyzedText, marks: tuple[str, ...]) -> float:
    """Return the share of filled lines that end, unstripped, in one of some marks."""
    lines = filled_lines(text)
    return ratio(sum(line.endswith(marks) for line in lines), len(lines))


def short_line_ratio(text: AnalyzedText, length: int = 30) -> float:
    """Return the share of filled lines of up to ``length`` characters."""
    lines = filled_lines(text)
    return ratio(sum(len(line) <= length for line in lines), len(lines))


def third_longest_line(text: AnalyzedText) -> int:
    """Return the length of the third longest part between newlines; 0 if there are fewer."""
    lengths = sorted(map(len, text.text.split("\n")))
    return lengths[-3] if len(lengths) >= 3 else 0


def boilerplate_ratio(text: AnalyzedText) -> float:
    """Return the share of paragraphs with a phrase of policies; 1.0 with ``lorem ipsum``."""
    lowered = text.text.lower()
    if "lorem ipsum" in lowered:
        return 1.0
    if not POLICY.search(lowered):
        return 0.0
    parts = double_newline_parts(text)
    return ratio(sum(bool(POLICY.search(part.lower())) for part in parts), len(parts))
