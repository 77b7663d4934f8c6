"""``dedup.Sentences`` and ``Lines``: remove parts of texts that occurred before in the set."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.sentence_splitting import sentences_function
from dagster_dataops.library.analysis.simplified_text import simplified
from dagster_dataops.library.analysis.word_splitting import Splitter, words_function
from dagster_dataops.library.dedup.algorithms.repeated_parts import (
    RepeatedParts,
    pack_parts,
    repeated_parts,
)
from dagster_dataops.library.dedup.exact import dedup
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.operators.options.ranges import AtLeastZero, PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record


def _verdict(repeats: list[int]) -> Any:
    return repeats or True


class Sentences(dedup):
    """Remove spans of sentences that occurred before in the set, and then records with too little.

    Reads and writes ``input_key``. Each ``span_sentences`` sentences in a row are a span. A span
    that occurred before, in an earlier record or earlier in the same one, is removed with all its
    sentences; a repeat of fewer than ``min_span_words`` words in a row stays. The rest
    keeps its own white space, but none at the start and no single space at the end. Spans are
    compared without case, punctuation, diacritics and the values of numbers. Blank spans never
    match.

    A text that lost something is dropped if it is empty, has fewer than ``min_words`` words or
    fewer than ``min_sentences`` sentences; 0 turns a minimum off. Unchanged texts stay.

    ``split_sentences=False`` compares lines instead of sentences. ``sentences`` and ``words`` split
    the text (extra ``spacy`` for ``"spacy"``).

    From C4 (Raffel et al. 2020), as in datatrove, which splits by spaCy. On purpose, short repeats
    stay as a whole (datatrove keeps their first sentence), white space at the end is no sentence
    (datatrove counts two spaces and more), and empty texts stay. The selection uses up to
    ``max_memory_mb`` MB and 4 bytes per record, then 24 bytes per span on disk.

    Args:
        input_key: Key of the text: a column, or a selector.
        span_sentences: Number of sentences in a span.
        split_sentences: Whether sentences are compared, or else lines.
        min_words: Least words of a text that lost something; 0 for no limit.
        min_sentences: Least sentences of a text that lost something; 0 for no limit.
        min_span_words: Shorter repeats stay.
        sentences: How the text is split: ``rule``, ``spacy``, ``newline`` or a function.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        language: ISO 639-1 code for ``spacy``.
        max_memory_mb: Memory in MB before files are used.
    """

    renamed_options: ClassVar = {
        "min_doc_words": "min_words",
        "min_num_sentences": "min_sentences",
        "min_words_to_remove_span": "min_span_words",
        "n_sentences": "span_sentences",
    }

    def __init__(
        self,
        input_key: str = "text",
        *,
        span_sentences: PositiveInt = 3,
        split_sentences: bool = True,
        min_words: AtLeastZero = 50,
        min_sentences: AtLeastZero = 3,
        min_span_words: AtLeastZero = 0,
        sentences: str | Splitter = "rule",
        words: str | Splitter = "whitespace",
        language: str = "en",
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key).checked_single("name one text")
        self._size, self._by_sentences = span_sentences, split_sentences
        self._min_words, self._min_sentences = min_words, min_sentences
        self._min_removed = min_span_words
        self._sentences = sentences_function(sentences, language)
        self._words = words_function(words, language)
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> str:
        text = self._column.text(record)
        parts = self._sentences(text) if self._by_sentences else text.splitlines()
        simple = list(map(simplified, parts))
        places = range(len(simple) - self._size + 1)
        return pack_parts(" ".join(simple[at : at + self._size]) for at in places)

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[Any]:
        return map(_verdict, repeated_parts(sketches, scratch, self._max_bytes))

    def __dataops_partitioning__(self) -> RepeatedParts:
        return RepeatedParts(self._max_bytes, _verdict)

    def change(self, record: Record, repeats: list[int]) -> Record | Drop:
        text = self._column.text(record)
        rest = self._without(text, repeats)
        if rest == text or (rest and self._is_enough(rest)):
            return self._column.replaced(rest, record)
        return Drop("repeated")

    def _without(self, text: str, repeats: list[int]) -> str:
        removed = {at for first in repeats for at in range(first, first + self._size)}
        pieces = self._pieces(text) if self._by_sentences else text.splitlines()
        if self._min_removed:
            removed -= set(self._short_runs(pieces, removed))
        kept = (piece for at, piece in enumerate(pieces) if at not in removed)
        if self._by_sentences:
            return "".join(kept).lstrip()
        return "\n".join(kept).lstrip()

    def _pieces(self, text: str) -> list[str]:
        """Return the sentences, each with the white space before it, and that after the last.

        A single space after the last is left out, as by datatrove.
        """
        ends = [0]
        for sentence in self._sentences(text):
            start = text.find(sentence, ends[-1])
            ends.append((start if start >= 0 else ends[-1]) + len(sentence))
        rest = text[ends[-1] :]
        return [text[start:end] for start, end in pairwise(ends)] + ["" if rest == " " else rest]

    def _short_runs(self, pieces: list[str], removed: set[int]) -> Iterator[int]:
        """Yield the numbers of removed pieces in runs with too few words to be removed."""
        run: list[int] = []
        for at in range(len(pieces) + 1):
            if at in removed:
                run.append(at)
                continue
            if len(self._words("\n".join(pieces[place] for place in run))) < self._min_removed:
                yield from run
            run = []

    def _is_enough(self, text: str) -> bool:
        enough = self._min_words <= 0 or len(self._words(text)) >= self._min_words
        return enough and (
            self._min_sentences <= 0 or len(self._sentences(text)) >= self._min_sentences
        )


class Lines(dedup):
    r"""Remove lines that occurred before in the set, and records of which nothing is left.

    Reads and writes ``input_key``. Lines are compared without case, punctuation, diacritics and the
    values of numbers. The first occurrence in record and line order stays. Blank lines, and lines
    of fewer than ``min_chars`` characters without white space at their ends, always stay. A text of
    which only blank lines are left is dropped.

    ``separator="\n\n"`` compares paragraphs. As in CCNet (Wenzek et al. 2020), but exact and over
    the whole set instead of one shard. The selection uses up to ``max_memory_mb`` MB and 4 bytes
    per record, then 24 bytes per line on disk.

    Args:
        input_key: Key of the text: a column, or a selector.
        separator: Text between the lines.
        min_chars: Lines with fewer characters always stay.
        max_memory_mb: Memory in MB before files are used.
    """

    def __init__(
        self,
        input_key: str = "text",
        *,
        separator: str = "\n",
        min_chars: AtLeastZero = 0,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not separator:
            msg = "separator is empty; give the text between lines"
            raise DefinitionError(msg)
        self._column = FieldKey(input_key).checked_single("name one text")
        self._separator, self._min_chars = separator, min_chars
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> str:
        lines = self._column.text(record).split(self._separator)
        return pack_parts(
            simplified(line) if len(line.strip()) >= self._min_chars else "" for line in lines
        )

    def keep(self, sketches: Iterator[str], scratch: Path) -> Iterator[Any]:
        return map(_verdict, repeated_parts(sketches, scratch, self._max_bytes))

    def __dataops_partitioning__(self) -> RepeatedParts:
        return RepeatedParts(self._max_bytes, _verdict)

    def change(self, record: Record, repeats: list[int]) -> Record | Drop:
        lines = self._column.text(record).split(self._separator)
        gone = set(repeats)
        kept = [line for at, line in enumerate(lines) if at not in gone]
        if not any(map(str.strip, kept)):
            return Drop("repeated")
        return self._column.replaced(self._separator.join(kept), record)
