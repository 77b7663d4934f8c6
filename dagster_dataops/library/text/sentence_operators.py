"""Operators of group ``text`` that work on sentences."""

import re
from typing import Any, ClassVar, Final, Literal

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.sentence_splitting import sentences_function
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.text.text_cleaning import text
from dagster_dataops.library.text_mapping import TextOperator
from dagster_dataops.operators.options.ranges import AtLeastZero

# Data-Juicer cuts a line after a mark, after two ellipses, and after a mark in quotation marks, if
# something else than a closing quotation mark follows. Its class of the last rule holds 2, 6 and
# braces too.
_ENDS: Final = re.compile("[.。！!？?…’”]")
_RULES: Final = (
    re.compile("([.。！!？?])([^’”])"),
    re.compile("(……)([^’”])"),
    re.compile("([.。！!？?{}62…][’”])([^’”])"),
)
_OUTSIDE: Final = {
    "latin_han": re.compile(r"[^a-zA-Z0-9\u4e00-\u9fa5\t ]+"),
    "any": re.compile(r"[^\w\t ]+"),
}


class SplitSentences(TextOperator, text):
    """Split a text into a list of sentences.

    Reads ``input_key`` and writes the list, stripped and without empty sentences, to
    ``output_key``.

    Args:
        input_key: The key of the text.
        output_key: Where the list is written.
        sentences: ``"rule"``: after ``. ! ? …``, their Chinese, Hindi, Arabic and Urdu forms, and
            closing quotes, but not after abbreviations; ``"spacy"``: as datatrove, needs the extra
            ``spacy``; ``"newline"``; or a function from a text to a list.
        language: ISO 639-1 code, for ``"spacy"``.
    """

    def __init__(
        self,
        input_key: str = "text",
        output_key: str = "sentences",
        *,
        sentences: str | Splitter = "rule",
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key, output_key, **kwargs)
        self._split = sentences_function(sentences, language)

    @override
    def changed(self, value: str) -> list[str]:
        return self._split(value)


class RemoveRepeatedSentences(TextOperator, text):
    """Remove sentences that occurred before in the same text.

    A sentence ends after ``. ! ?``, their Chinese forms, two ellipses, or a closing quotation mark
    after one of them, and at the end of a line. Shorter sentences than
    ``min_sentence_length`` always stay. Reads ``input_key`` (one key or several) and writes
    ``output_key`` (by default, the same keys).

    As ``remove_repeat_sentences_mapper`` of Data-Juicer. That compares Latin letters, Chinese
    characters and digits alone, so it never removes a sentence in Cyrillic or Arabic script;
    ``script="any"`` does.

    Args:
        ignore_case: Whether sentences are compared in lower case.
        ignore_special_character: Whether only letters, digits, spaces and tabs are compared and
            counted.
        min_sentence_length: The number of characters from which a sentence is removed.
        script: The letters that count: ``"latin_han"``, or ``"any"``.
    """

    renamed_options: ClassVar = {
        "min_repeat_sentence_length": "min_sentence_length",
        "lowercase": "ignore_case",
    }

    def __init__(
        self,
        *args: Any,
        ignore_case: bool = False,
        ignore_special_character: bool = True,
        min_sentence_length: AtLeastZero = 2,
        script: Literal["latin_han", "any"] = "latin_han",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lowercase, self._shortest = ignore_case, min_sentence_length
        self._ignored = _OUTSIDE[script] if ignore_special_character else None

    @override
    def changed(self, value: str) -> str:
        seen: set[str] = set()
        lines = [
            "".join(sentence for sentence in _sentences(line) if self._is_new(sentence, seen))
            if line
            else line
            for line in value.split("\n")
        ]
        return "\n".join(lines)

    def _is_new(self, sentence: str, seen: set[str]) -> bool:
        """Return whether a sentence stays; add it to those seen."""
        compared = sentence.strip()
        if not self._lowercase and len(compared) < self._shortest:
            return True
        if self._lowercase:
            compared = compared.lower()
        if self._ignored is not None:
            compared = self._ignored.sub("", compared)
        if len(compared) < self._shortest:
            return True
        before = len(seen)
        seen.add(compared)
        return len(seen) > before


def _sentences(line: str) -> list[str]:
    if _ENDS.search(line) is None:
        return [line]
    for rule in _RULES:
        line = rule.sub(r"\1\n\2", line)
    return line.split("\n")
