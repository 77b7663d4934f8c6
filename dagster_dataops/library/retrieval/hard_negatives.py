"""``retrieval.Index`` and ``retrieval.HardNegatives``: wrong passages similar to the right one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.llm.vector_files import packed_column
from dagster_dataops.library.retrieval.passage_index import (
    VECTORS,
    PassageIndex,
    plain,
    write_index,
)
from dagster_dataops.operators.options.file_content import FileContent
from dagster_dataops.operators.options.ranges import Fraction, PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

retrieval: Any = data_register.new_group("retrieval")


class Index(retrieval):
    """Build the index of passages for ``retrieval.HardNegatives``, as an artefact.

    Reads ``input_key="text"``. Passages are found by their words with BM25 (the formula of Lucene
    with ``k1=1.5`` and ``b=0.75``), whose case does not count; or, with ``vector_key``, by the
    cosine of the vectors in that column, such as those of ``llm.Embed``. Equal passages count once,
    empty ones not at all. BM25 is computed in memory, in about 30 bytes for each word of the
    passages. Needs the extra ``retrieval``.

    Source: Robertson and Zaragoza 2009; the package ``bm25s``, L\u00f9 2024, arXiv:2407.03618.

    Args:
        input_key: Key of the passage: a column, or a selector.
        vector_key: Column of its vector; ``None`` finds passages by their words.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba`` or
            ``mecab``.
        language: ISO 639-1 code of the texts, for ``spacy``.
    """

    def __init__(
        self,
        input_key: str = "text",
        *,
        vector_key: str | None = None,
        words: str = "regex",
        language: str = "en",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column = FieldKey(input_key)
        self._vectors = None if vector_key is None else FieldKey(vector_key)
        self._words, self._language = words, language

    def build(self, records: Iterator[Record], folder: Path) -> None:
        vectors = self._vectors
        rows = (
            (self._column.text(record), None if vectors is None else packed_column(vectors, record))
            for record in records
        )
        write_index(folder, rows, self._words, self._language)


class HardNegatives(retrieval):
    """Find passages that are similar to the one that answers a question, but do not answer it.

    Reads the question in ``input_key="question"`` and the passage that answers it in
    ``positive_key="text"``; writes ``output_key="negatives"``, a list of ``count`` passages or
    fewer, the best first. They are appended to a list that the column has, so that a second index
    can add others. ``index`` is the node of a ``retrieval.Index``, or its folder. An index of
    vectors reads the vector of the question in ``vector_key``.

    Left out of the ``candidates`` best passages are: the right one; those with more than
    ``max_score_ratio`` of its score, which may answer the question, too; those without a common
    word; and, with ``answer_key``, those that contain the answer. Case and white space do not
    count. A question for which none is left is dropped for the reason ``no_negative``, unless
    ``keep_empty=True``. A right passage that is not in the index is an error of the record, unless
    ``max_score_ratio`` is ``None``. Needs the extra ``retrieval``.

    Source: negatives of BM25 that lack the answer, Karpukhin et al. 2020, arXiv:2004.04906; the
    limit by the score of the right passage, Moreira et al. 2024, arXiv:2407.15831.

    Args:
        index: Node that builds the index, or its folder.
        input_key: Key of the question: a column, or a selector.
        positive_key: Key of the right passage.
        output_key: Column of the passages that are found.
        vector_key: Column of the vector of the question, for an index of vectors.
        answer_key: Key of the answer; ``None`` does not look for it.
        count: Number of passages for a question.
        candidates: Number of the best passages that are looked at.
        max_score_ratio: Largest score, as a share of that of the right passage; ``None`` for any.
        keep_empty: Whether a question without a passage stays, with an empty list.
    """

    def __init__(
        self,
        index: Annotated[str | Path, FileContent],
        input_key: str = "question",
        positive_key: str = "text",
        output_key: str = "negatives",
        *,
        vector_key: str | None = None,
        answer_key: str | None = None,
        count: PositiveInt = 4,
        candidates: PositiveInt = 100,
        max_score_ratio: Fraction | None = 0.95,
        keep_empty: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._index = PassageIndex(index)
        if (self._index.kind == VECTORS) != (vector_key is not None):
            need = "needs" if vector_key is None else "reads no"
            msg = f"an index of kind {self._index.kind!r} {need} vector_key, got {vector_key!r}"
            raise DefinitionError(msg)
        self._question, self._positive = FieldKey(input_key), FieldKey(positive_key)
        self._answer = None if answer_key is None else FieldKey(answer_key)
        self._vector = None if vector_key is None else FieldKey(vector_key)
        self._written, self._ratio = output_key, max_score_ratio
        self._count, self._candidates, self._keep_empty = count, candidates, keep_empty

    def forward(self, record: Record) -> Record | Drop:
        before = record.get(self._written) or []
        if not isinstance(before, list):
            msg = f"{self._written} is {type(before).__name__}, not a list of passages"
            raise UnfitRecordError(msg)
        negatives = self._negatives(record, before)
        if not (negatives or before or self._keep_empty):
            return Drop("no_negative")
        return {**record, self._written: [*before, *negatives]}

    def _negatives(self, record: Record, before: list[Any]) -> list[str]:
        positive = self._positive.text(record)
        scores = self._scores(record)
        limit = self._limit(scores, positive)
        skipped = {plain(positive), *(plain(text) for text in before if isinstance(text, str))}
        answer = "" if self._answer is None else plain(self._answer.text(record))
        negatives: list[str] = []
        for position in self._index.best(scores, self._candidates):
            if not 0 < scores[position] <= limit:
                continue
            passage = self._index.passage(position)
            text = plain(passage)
            if text in skipped or (answer and answer in text):
                continue
            negatives.append(passage)
            if len(negatives) == self._count:
                break
        return negatives

    def _scores(self, record: Record) -> Any:
        if self._vector is None:
            return self._index.scores_of_text(self._question.text(record))
        try:
            return self._index.scores_of_vector(self._vector.value(record))
        except (ValueError, TypeError) as error:
            msg = f"{self._vector.name}: {error}"
            raise UnfitRecordError(msg) from None

    def _limit(self, scores: Any, positive: str) -> float:
        """Return the largest score of a passage that is taken."""
        if self._ratio is None:
            return float("inf")
        position = self._index.position_of(positive)
        if position is None:
            msg = (
                f"the passage in {self._positive.name!r} is not in the index, so that its score is "
                "not known; index the same passages, or set max_score_ratio=None"
            )
            raise UnfitRecordError(msg)
        return float(scores[position]) * self._ratio
