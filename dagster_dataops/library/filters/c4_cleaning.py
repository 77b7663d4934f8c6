"""``filters.C4Quality``: the filter of C4, which also removes lines."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias

from annotated_types import Ge

from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.analyzed_text import AnalyzedText, analyzed
from dagster_dataops.library.analysis.character_sets import TERMINAL_PUNCTUATION
from dagster_dataops.library.analysis.sentence_splitting import sentences_function
from dagster_dataops.library.analysis.word_splitting import Splitter, words_function
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.language_limits import base_language, by_language, words_of
from dagster_dataops.library.filters.rules import Filter, Judgement, filters
from dagster_dataops.records import Record

_Limit: TypeAlias = Annotated[int, Ge(-1)]  # -1 is no limit, as upstream

_CITATION: Final = re.compile(r"\[(?:\d*|edit|citation needed)\]")
_END_MARKS: Final = (".", "?", "!", '"', "'")
_MARKS_OF_ALL: Final = (*sorted(TERMINAL_PUNCTUATION), *"\"'”’“»«」』）)")
_POLICY: Final = re.compile(
    "terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"
)
_RARE: Final = ("lorem ipsum", "javascript", "{", "cookie", "terms of use", "privacy policy")
_OFF: Final = -1  # of a number, as upstream


class CleanedText(NamedTuple):
    """A text without the lines that the rules of C4 remove.

    Attributes:
        reason: Reason to drop the whole text; ``None`` to keep it.
        text: The lines that are left.
        lines: Number of lines before.
        kept: Number of lines that are left.
        sentences: Number of sentences that are left; it may be less if it is enough and not all are
            counted.
    """

    reason: str | None
    text: str
    lines: int
    kept: int
    sentences: int


class C4Quality(Filter, filters):
    """Remove lines that are no prose, and drop texts that are not made of sentences.

    Reads ``input_key`` and writes the lines that are left to ``output_key`` (by default, the same
    key), joined by newlines; sentences, with ``split_paragraph=False``, by spaces.

    Of each line, in this order: a line with a word longer than ``max_word_length`` goes; citations
    such as ``[1]`` and ``[edit]`` are removed (``remove_citations``); a line that does not end in
    ``. ? ! " '``, or ends in ``...``, goes (``filter_no_terminal_punct``); a line with fewer than
    ``min_words_per_line`` words goes; "lorem ipsum" drops the text (reason ``lorem_ipsum``;
    ``filter_lorem_ipsum``); a line with "javascript" goes (``filter_javascript``); ``{`` drops the
    text (``curly_bracket``; ``filter_curly_bracket``); a line about cookies or terms of use goes
    (``filter_policy``). At the end, fewer than ``min_sentences`` sentences drop the text
    (``too_few_sentences``). -1 or ``None`` switches a number off. ``sentences`` is ``rule``,
    ``newline``, ``spacy`` (as datatrove; extra ``spacy``) or a function.

    The rules are made for English web pages: the phrases are English, and words are between spaces.
    With other languages, options that are left at their defaults are 3 for ``min_sentences``
    and ``False`` for ``filter_curly_bracket``; in languages without spaces each
    character is a word. ``filter_no_terminal_punct`` takes the marks of all scripts then.

    Mode ``tag`` writes the signals ``c4_lines``, ``c4_kept_lines``, ``c4_sentences`` and leaves the
    text as it is.

    Source: Raffel et al. 2020, arXiv:1910.10683, section 2.2; ``C4QualityFilter`` of datatrove.

    Args:
        input_key: Key of the text: a column, or a selector.
        output_key: Column of the changed text; ``None`` writes it where it was read.
        split_paragraph: Judge lines; ``False`` judges sentences.
        remove_citations: Remove ``[1]``, ``[edit]`` and ``[citation needed]``.
        filter_no_terminal_punct: Remove lines that do not end in ``. ? ! " '``, or end in ``...``.
        min_sentences: Smallest number of sentences to keep; -1 or ``None`` for no limit.
        min_words_per_line: Smallest number of words of a line to keep; -1 or ``None`` for no limit.
        max_word_length: Longest word of a line to keep, in characters; -1 or ``None`` for no limit.
        filter_lorem_ipsum: Drop texts with "lorem ipsum".
        filter_javascript: Remove lines with "javascript".
        filter_curly_bracket: Drop texts with ``{``.
        filter_policy: Remove lines about cookies, privacy and terms of use.
        sentences: How lines are split into sentences: ``rule``, ``newline``, ``spacy`` or a
            function.
        language: ISO 639-1 code of the texts, also with a region.
    """

    renamed_options: ClassVar = {"min_num_sentences": "min_sentences"}

    def __init__(
        self,
        *,
        input_key: str = "text",
        output_key: str | None = None,
        split_paragraph: bool = True,
        remove_citations: bool = True,
        filter_no_terminal_punct: bool = True,
        min_sentences: _Limit | None = 5,
        min_words_per_line: _Limit | None = 3,
        max_word_length: _Limit | None = 1000,
        filter_lorem_ipsum: bool = True,
        filter_javascript: bool = True,
        filter_curly_bracket: bool = True,
        filter_policy: bool = True,
        sentences: str | Splitter = "rule",
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._written = FieldKey(input_key), output_key
        if output_key is None:
            self._column.checked_single("give an output_key")
        self._by_line = split_paragraph
        self._citations, self._ends = remove_citations, filter_no_terminal_punct
        limits = by_language(
            C4Quality.__init__,
            language,
            {
                "min_sentences": min_sentences,
                "filter_curly_bracket": filter_curly_bracket,
            },
        )
        min_sentences, filter_curly_bracket = limits.values()
        self._least_sentences = _OFF if min_sentences is None else min_sentences
        self._least_words = _OFF if min_words_per_line is None else min_words_per_line
        self._longest_word = _OFF if max_word_length is None else max_word_length
        self._lorem, self._bracket = filter_lorem_ipsum, filter_curly_bracket
        self._javascript, self._policy = filter_javascript, filter_policy
        self._split = sentences_function(sentences, language)
        self._words = words_function(words_of("whitespace", language))
        self._end_marks = _END_MARKS if base_language(language) == "en" else _MARKS_OF_ALL

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del known  # the text is read in any case
        text = analyzed(self._column.text(record))
        cleaning = self.cleaned(text, thorough=thorough)
        signals = {
            "c4_lines": cleaning.lines,
            "c4_kept_lines": cleaning.kept,
            "c4_sentences": cleaning.sentences,
        }
        if cleaning.reason is not None:
            return Judgement(cleaning.reason, signals)
        return Judgement(None, signals, self.with_text(record, cleaning.text))

    def with_text(self, record: Record, text: str) -> Record:
        """Return the columns to write for a text."""
        if self._written is not None:
            return {self._written: text}
        return self._column.mapped_text(lambda _: text, record)

    def cleaned(self, text: AnalyzedText, *, thorough: bool = False) -> CleanedText:
        """Return a text without the lines that the rules remove.

        With ``thorough``, all lines are counted, even if the text is dropped.
        """
        lines = text.split(str.splitlines if self._by_line else self._split)
        kept: list[str] = []
        reason = None
        number = 0
        for line in self._likely(lines):
            left = self._prose(line)
            if left is None:
                continue
            verdict = self._verdict(left) if text.get(_has_phrases) else None
            if verdict:
                reason = reason or verdict
                if not thorough:
                    break
            elif verdict is None:
                kept.append(left)
                if thorough or number < self._least_sentences:
                    number += self._sentences_in(left)
        if reason is None and number < self._least_sentences:
            reason = "too_few_sentences"
        joined = ("\n" if self._by_line else " ").join(kept).strip()
        return CleanedText(reason, joined, len(lines), len(kept), number)

    def _likely(self, lines: list[str]) -> list[str]:
        """Return the lines, stripped, without most of those that have no mark at the end."""
        stripped = [line.strip() for line in lines]
        if not self._ends:
            return stripped
        # A citation may follow the mark.
        return [line for line in stripped if line.endswith((*self._end_marks, "]"))]

    def _prose(self, line: str) -> str | None:
        """Return a line without citations; ``None`` if it is no prose."""
        left = _CITATION.sub("", line) if self._citations and "[" in line else line
        if self._ends and (not left.endswith(self._end_marks) or left.endswith("...")):
            return None
        words = self._words(line)
        if len(words) < self._least_words:
            return None
        if len(line) > self._longest_word != _OFF and max(map(len, words)) > self._longest_word:
            return None
        return left

    def _verdict(self, line: str) -> str | None:
        """Return the reason to drop the text, "" to remove the line, ``None`` to keep it."""
        lowered = line.lower()
        if self._lorem and "lorem ipsum" in lowered:
            return "lorem_ipsum"
        if self._javascript and "javascript" in lowered:
            return ""
        if self._bracket and "{" in line:
            return "curly_bracket"
        return "" if self._policy and _POLICY.search(lowered) else None

    def _sentences_in(self, line: str) -> int:
        if self._least_sentences == _OFF or not self._by_line:
            return 1
        return max(1, len(self._split(line)))


def _has_phrases(text: AnalyzedText) -> bool:
    """Return whether a line may have a phrase that the rules look for.

    Without a citation, a line has no phrase that the text has not.
    """
    lowered = text.text.lower()
    return any(phrase in lowered for phrase in _RARE) or bool(_CITATION.search(lowered))
