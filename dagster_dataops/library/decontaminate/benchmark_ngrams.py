"""The n-grams of benchmarks, each with the task that it belongs to."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.simplified_text import simplified
from dagster_dataops.library.analysis.word_ngrams import ngrams
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.given_records import Given, given_records

Benchmark: TypeAlias = Given | Mapping[str, Given]


class BenchmarkNgrams:
    """Computes the n-grams of texts and of the records of benchmarks.

    Args:
        size: The number of words in an n-gram.
        words: Splits a simplified text.
        ignore_numbers: Whether a benchmark has no n-grams without a letter.
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

        Args:
            query: The question.
            label: The answer.
            inside: Whether to yield n-grams of the query alone, too.
            across: Whether to yield n-grams with words of both.
        """
        asked, answered = self.words(query), self.words(label)
        yield from self._counting(answered)
        if inside:
            yield from self._counting(asked)
        if across and self._size > 1:
            most = self._size - 1
            yield from self._counting(asked[-most:] + answered[:most])

    def _counting(self, words: list[str]) -> list[str]:
        found = ngrams(words, self._size)
        if self._ignore_numbers:
            found = [ngram for ngram in found if any(map(str.isalpha, ngram))]
        return found


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
    for name, given in named.items():
        number = empty = 0
        for number, record in enumerate(given_records("benchmark", given), 1):  # noqa: B007 - it is the number of records
            empty += not (query.present(record) or label.present(record))
            yield name or task.text(record) or "benchmark", query.text(record), label.text(record)
        if 0 < number == empty:
            which = f"benchmark {name!r}" if name else "benchmark"
            msg = (
                f"no record of {which} has the column {query_key!r} or {label_key!r}; the last one "
                f"has {', '.join(record) or 'none'}; give the names by query_key and label_key"
            )
            raise DefinitionError(msg)
