"""``decontaminate.NGrams`` and ``decontaminate.Overlap``: find benchmarks in training data."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias

from annotated_types import Interval

from dagster_dataops.data import data_register
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.simplified_text import simplified
from dagster_dataops.library.analysis.word_splitting import Splitter, ngrams, words_function
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filter_outcome import MODES, FilterOutcome
from dagster_dataops.library.given_records import Given, given_records
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

decontaminate: Any = data_register.new_group("decontaminate")

_Share: TypeAlias = Annotated[float, Interval(gt=0, le=1)]

_REASON = "contaminated"

Benchmark: TypeAlias = Given | Mapping[str, Given]


class NGrams(decontaminate):
    """Drop records that have an n-gram of words in common with a benchmark.

    Reads ``input_key``. ``benchmark`` is a dataset with a question in ``query_key`` and an answer
    in ``label_key``: a list of records, the path of a jsonl file, or a dict of these by the name of
    the task. Otherwise the name of the task is in ``task_key``. Its n-grams are those of the
    answers; with ``find_query_ngrams`` those of the questions; with ``find_overlap_ngrams`` those
    with words of both. Texts are compared without case, punctuation, diacritics and the values of
    numbers. Typical sizes: 12 (datatrove), 13 (GPT-3), 8 (Llama). A question or answer of fewer
    words has no n-gram. N-grams without a letter do not count (``ignore_numbers``): since every
    number is 0, the calculation of an answer would match any table.

    ``mode="drop"`` drops with the reason ``contaminated``. ``"tag"`` drops nothing, and writes the
    first common n-gram to ``contaminated_ngram``, its task to ``contaminated_task`` and the reason
    to ``reason_key``; ``null`` without one. ``"both"`` drops, and writes no n-gram and no task,
    ``null``, to the others.

    As in datatrove, which splits words by spaCy (``words="spacy"``, extra ``spacy``). On purpose,
    questions count by default, because the short answers of GSM8K have few n-grams, and n-grams of
    nothing but numbers do not. The n-grams are held in memory.

    Args:
        benchmark: Its records, the path of a jsonl file, or a dict of these by task.
        input_key: Key of the text: a column, or a selector.
        query_key: Column of the question in the benchmark.
        label_key: Column of the answer in the benchmark.
        task_key: Column of the name of the task in the benchmark.
        ngram_size: Number of words in an n-gram.
        find_query_ngrams: Whether the n-grams of questions count.
        find_overlap_ngrams: Whether n-grams with words of question and answer count.
        ignore_numbers: Whether n-grams without a letter do not count.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        language: ISO 639-1 code for ``words="spacy"``.
        mode: ``drop``, ``tag`` or ``both``.
        reason_key: Column of the reason.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        input_key: str = "text",
        *,
        query_key: str = "query",
        label_key: str = "label",
        task_key: str = "task",
        ngram_size: PositiveInt = 12,
        find_query_ngrams: bool = True,
        find_overlap_ngrams: bool = True,
        ignore_numbers: bool = True,
        words: str | Splitter = "whitespace",
        language: str = "en",
        mode: str = "drop",
        reason_key: str = "drop_reason",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("mode", mode, MODES)
        self._column = FieldKey(input_key)
        self._mode, self._reason_key = mode, reason_key
        self._ngrams = BenchmarkNgrams(
            ngram_size, words_function(words, language), ignore_numbers=ignore_numbers
        )
        self._tasks: dict[str, str] = {}
        for task, query, label in benchmark_records(benchmark, task_key, query_key, label_key):
            grams = self._ngrams.of_parts(
                query, label, inside=find_query_ngrams, across=find_overlap_ngrams
            )
            for ngram in grams:
                self._tasks.setdefault(ngram, task)

    def forward(self, record: Record) -> Record | Drop | None:
        ngrams = self._ngrams.of_text(self._column.text(record))
        ngram = None
        if not self._tasks.keys().isdisjoint(ngrams):
            ngram = next(ngram for ngram in ngrams if ngram in self._tasks)
        if ngram is not None and self._mode != "tag":
            return Drop(_REASON)
        if self._mode != "drop":
            record["contaminated_ngram"] = ngram
            record["contaminated_task"] = None if ngram is None else self._tasks[ngram]
        if self._mode == "tag":
            record[self._reason_key] = None if ngram is None else _REASON
        return None


class Overlap(decontaminate):
    """Drop records of whose words a large share occurs in n-grams of a benchmark.

    Reads ``input_key``. ``benchmark``, ``query_key``, ``label_key``, ``ignore_numbers`` and
    ``words`` as in `NGrams`; question and answer count as one text. The overlap is the share of the
    words of a text that are part of an n-gram that the benchmark has, too; 0 for a text without
    words. A record is dropped if its overlap is at least ``threshold``: 0.8 for records that are
    mostly benchmark, 0.2 for all that are not clean, after Llama 2 (Touvron et al. 2023), which
    also lets some words differ.

    ``mode="drop"`` drops with the reason ``contaminated``. ``"tag"`` drops nothing, and writes the
    overlap to ``benchmark_overlap`` in ``stats_key`` and the reason to ``reason_key``. ``"both"``
    drops, and writes the overlap of the others.

    Args:
        benchmark: Its records, the path of a jsonl file, or a dict of these by task.
        input_key: Key of the text: a column, or a selector.
        query_key: Column of the question in the benchmark.
        label_key: Column of the answer in the benchmark.
        ngram_size: Number of words in an n-gram.
        threshold: Share of the words, above 0, from which a record is dropped.
        ignore_numbers: Whether n-grams without a letter do not count.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        language: ISO 639-1 code for ``words="spacy"``.
        mode: ``drop``, ``tag`` or ``both``.
        stats_key: Column of the signals, a dict.
        reason_key: Column of the reason.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        input_key: str = "text",
        *,
        query_key: str = "query",
        label_key: str = "label",
        ngram_size: PositiveInt = 10,
        threshold: _Share = 0.8,
        ignore_numbers: bool = True,
        words: str | Splitter = "whitespace",
        language: str = "en",
        mode: str = "drop",
        stats_key: str = "stats",
        reason_key: str = "drop_reason",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._column, self._size, self._threshold = FieldKey(input_key), ngram_size, threshold
        self._outcome = FilterOutcome(mode, stats_key, reason_key)
        self._ngrams = BenchmarkNgrams(
            ngram_size, words_function(words, language), ignore_numbers=ignore_numbers
        )
        self._known = {
            ngram
            for _, query, label in benchmark_records(benchmark, "task", query_key, label_key)
            for ngram in self._ngrams.of_benchmark(f"{query} {label}")
        }

    def forward(self, record: Record) -> Any:
        overlap = self._overlap(self._column.text(record))
        reason = _REASON if overlap >= self._threshold else None
        return self._outcome.of(record, reason, {"benchmark_overlap": overlap})

    def _overlap(self, text: str) -> float:
        ngrams = self._ngrams.of_text(text)
        if self._known.isdisjoint(ngrams):
            return 0.0
        covered = end = 0
        for at, ngram in enumerate(ngrams):
            if ngram in self._known:
                covered += at + self._size - max(at, end)
                end = at + self._size
        return covered / (len(ngrams) + self._size - 1)


class BenchmarkNgrams:
    """Computes the n-grams of texts and of the records of benchmarks.

    They have ``size`` of the ``words`` of a simplified text. With ``ignore_numbers``, a benchmark
    has no n-grams without a letter.
    """

    def __init__(self, size: int, words: Splitter, *, ignore_numbers: bool) -> None:
        self._size, self._split, self._ignore_numbers = size, words, ignore_numbers

    def words(self, text: str) -> list[str]:
        """Return the words of a simplified text."""
        return self._split(simplified(text))

    def of_text(self, text: str) -> list[str]:
        """Return all n-grams of a text, in order."""
        return ngrams(self.words(text), self._size)

    def of_benchmark(self, text: str) -> list[str]:
        """Return the n-grams of a text of a benchmark."""
        return self._counting(self.words(text))

    def of_parts(self, query: str, label: str, *, inside: bool, across: bool) -> Iterator[str]:
        """Yield the n-grams of a label of a benchmark, and those that reach from the query to it.

        ``inside`` yields the n-grams of the query alone, too; ``across`` those with words of both.
        """
        asked, answered = self.words(query), self.words(label)
        yield from self._counting(answered)
        if inside:
            yield from self._counting(asked)
        if across and self._size > 1:
            most = self._size - 1
            yield from self._counting(asked[-most:] + answered[:most])

    def _counting(self, words: list[str]) -> list[str]:
        grams = ngrams(words, self._size)
        if self._ignore_numbers:
            grams = [ngram for ngram in grams if any(map(str.isalpha, ngram))]
        return grams


def benchmark_records(
    benchmark: Benchmark, task_key: str, query_key: str, label_key: str
) -> Iterator[tuple[str, str, str]]:
    """Yield task, query and label of each record of a benchmark, or of several by their names.

    Raises:
        DefinitionError: ``benchmark`` is no dataset, or none of its records has a query or label.
        InputError: A file cannot be read.
        NoTextError: A query or label is no text.
    """
    named = benchmark if isinstance(benchmark, Mapping) else {"": benchmark}
    task, query, label = FieldKey(task_key), FieldKey(query_key), FieldKey(label_key)
    for name, records in named.items():
        number = empty = 0
        for number, record in enumerate(given_records("benchmark", records), 1):  # noqa: B007 - it is the number of records
            empty += not (query.present(record) or label.present(record))
            yield name or task.text(record) or "benchmark", query.text(record), label.text(record)
        if 0 < number == empty:
            which = f"benchmark {name!r}" if name else "benchmark"
            msg = (
                f"no record of {which} has the column {query_key!r} or {label_key!r}; the last one "
                f"has {', '.join(record) or 'none'}; give the names by query_key and label_key"
            )
            raise DefinitionError(msg)
