"""Functions that split a text into sentences, by name."""

import re
from typing import Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.word_splitting import Splitter, spacy_pipeline

_WIDE: Final = "。！？"  # these need no space after them
_END: Final = re.compile(rf"[.!?…{_WIDE}।؟۔]+[\"'”’»)\]}}」』）]*")
_LONGEST_WORD: Final = 24  # of a number or an abbreviation before a dot
_ABBREVIATION: Final = re.compile(
    "adj|al|approx|apr|art|assoc|aug|ave|bros|ca|capt|cf|chap|co|col|corp|dec|dept|dr|eds?|esp|est|"
    "etc|feb|figs?|fri|gen|gov|hon|inc|jan|jr|jul|jun|lt|ltd|maj|mar|mon|mrs?|ms|mt|nos?|nov|oct|"
    "pp?|prof|rep|rev|sat|sec|sen|sept?|sgt|sr|st|sun|tel|thu|tue|univ|vol|vs|wed|"
    r"e\.g|i\.e|u\.s|u\.k|a\.m|p\.m|ph\.d"
)
_WORDS_TOO: Final = frozenset({"art", "fig", "mar", "no", "rep", "sat", "sun", "wed"})


def sentences_function(sentences: str | Splitter = "rule", language: str = "en") -> Splitter:
    """Return the function that splits a text into sentences, stripped and without empty ones.

    Args:
        sentences: ``rule``: a sentence ends after ``. ! ? …``, their Chinese, Hindi, Arabic and
            Urdu forms, and closing quotes and brackets, if white space or the end follows (Chinese
            marks need none). A dot does not end it after a single letter, a number or an
            abbreviation; ``no`` is one before a number, and words such as ``sat`` and ``sun``
            there and with a capital. ``newline``: each line. ``spacy``: spaCy's sentence splitter.
            Or a function from a text to a list of sentences.
        language: ISO 639-1 code, for ``spacy``.
    """
    if callable(sentences):
        return sentences
    if sentences == "rule":
        return rule_sentences
    if sentences == "newline":
        return _line_sentences
    if sentences == "spacy":
        return spacy_pipeline(language).sentences
    msg = (
        f"sentences={sentences!r} is unknown; use rule, newline, spacy or a function from a text "
        "to a list of sentences"
    )
    raise DefinitionError(msg)


def rule_sentences(text: str) -> list[str]:
    """Return the sentences of ``text`` by the rule of `sentences_function`."""
    sentences = []
    start = 0
    for match in _END.finditer(text):
        if _ends_sentence(text, match):
            sentences.append(text[start : match.end()].strip())
            start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    marks, end = match[0], match.end()
    if end < len(text) and not text[end].isspace() and not any(mark in _WIDE for mark in marks):
        return False
    if not marks.startswith(".") or marks.startswith(".."):
        return True
    before = text[max(0, match.start() - _LONGEST_WORD) : match.start()].split()
    if not before or text[match.start() - 1].isspace():
        return True
    word = before[-1].lstrip("\"'“‘«([{")
    return not (word.isdigit() or len(word) == 1 or _is_abbreviation(word, text[end : end + 2]))


def _is_abbreviation(word: str, after: str) -> bool:
    lower = word.lower()
    if lower in _WORDS_TOO and not after.strip().isdigit():
        return lower not in {"no", word}
    return _ABBREVIATION.fullmatch(lower) is not None


def _line_sentences(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]
