"""``dedup.Against``: drop records that occur in another dataset; ``dedup.Index``: index one."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import xxhash

from dagster_dataops.datasets.artefact_facts import FORMAT, read_facts
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.dedup.algorithms.lsh_bands import buckets_of, choose_bands
from dagster_dataops.library.dedup.algorithms.ngram_hashes import MinHash, NgramHashes
from dagster_dataops.library.dedup.algorithms.option_checks import (
    NgramSize,
    Permutations,
    Seed,
    Threshold,
)
from dagster_dataops.library.dedup.exact import dedup, normalization
from dagster_dataops.library.dedup.urls import canonical_url
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.given_records import Given, given_records
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.library.sorting.sorted_keys import SortedKeys, write_sorted
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.operators.outcomes.record_context import Drop
from dagster_dataops.records import Record

_KEYS: Final = "keys"
_OPTIONS: Final = "options.json"
_FORMAT: Final = 1  # of the files
_INPUT_KEYS: Final = {"exact": "text", "url": "url", "near": "text"}
_KEY_BYTES: Final = {"exact": 16, "url": 16, "near": 8}


class _KeyedOperator(Operator):
    """Computes the keys of records: a digest of text or URL, or the buckets of its MinHash.

    Args:
        by: What is compared: ``exact``, ``url`` or ``near``.
        input_key: Key of the text or URL; ``None`` for ``text``, or ``url`` with ``by="url"``.
        normalize: ``none``, or ``datajuicer`` to ignore case, white space, digits and ASCII
            punctuation.
        threshold: Jaccard index, 0.01 to 1, from which texts are similar.
        permutations: Number of MinHash values from which bands and rows are chosen.
        ngram_size: Number of words in an n-gram.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        seed: Another number makes other MinHash values.
        **kwargs: See `Operator`.
    """

    def __init__(
        self,
        by: str = "exact",
        *,
        input_key: str | None = None,
        normalize: str = "none",
        threshold: Threshold = 0.8,
        permutations: Permutations = 128,
        ngram_size: NgramSize = 5,
        words: str | Splitter = "regex",
        seed: Seed = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("by", by, _INPUT_KEYS)
        self._by = by
        self._options = {
            "by": by,
            "input_key": input_key,
            "normalize": normalize,
            "threshold": threshold,
            "permutations": permutations,
            "ngram_size": ngram_size,
            "words": words,
            "seed": seed,
        }
        self._column = FieldKey(input_key or _INPUT_KEYS[by])
        self._normalized = normalization(normalize, ignore_case=False)
        if by == "near":
            self._ngrams = NgramHashes(ngram_size, words)
            self._bands, self._rows = choose_bands(threshold, permutations)
            self._minhash = MinHash("dedup.Against", self._bands * self._rows, seed)

    def _keys_of(self, record: Record) -> list[bytes]:
        """Return the keys of a record; none for a record without a URL."""
        text = self._column.text(record)
        if self._by == "near":
            return buckets_of(self._minhash.of(self._ngrams.of(text)), self._bands, self._rows)
        if self._by == "url":
            text = canonical_url(text)
            if not text:
                return []
        elif self._normalized is not None:
            text = self._normalized(text)
        return [xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"))]


class Index(_KeyedOperator, dedup):
    """Build the index of a dataset for ``dedup.Against``, as an artefact.

    Options as there. The index has 16 bytes per record on disk; with ``by="near"`` 8 bytes per band
    and record. Building uses up to ``max_memory_mb`` MB, and the same space on disk once more.

    Args:
        max_memory_mb: Memory in MB before files are used.
    """

    def __init__(self, *args: Any, max_memory_mb: PositiveInt = 256, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_bytes = max_memory_mb << 20

    def build(self, records: Iterator[Record], folder: Path) -> None:
        keys = (key for record in records for key in self._keys_of(record))
        write_sorted(keys, _KEY_BYTES[self._by], folder / _KEYS, self._max_bytes)
        path = folder / _OPTIONS
        with storage(path, "write"):
            facts = {FORMAT: _FORMAT, **self._options}
            path.write_text(json.dumps(facts, default=_function_name, sort_keys=True))


class Against(_KeyedOperator, dedup):
    """Drop records that occur in another dataset, such as a former release.

    Reads ``input_key``, by default ``text``, or ``url`` with ``by="url"``. ``reference`` is the
    other dataset: a list of records, the path of a jsonl file (these two are held in memory), or an
    artefact of ``dedup.Index`` with the same options, which is read from disk. The content of the
    file counts: if it is replaced, the result is made again.

    ``by="exact"`` compares texts (``normalize`` as in `Exact`), ``"url"`` URLs as `Url` does,
    ``"near"`` drops texts that agree in a band with one of the other dataset, as `NearDuplicate`
    finds them (``threshold``, ``permutations``, ``ngram_size``, ``words``, ``seed``; extra
    ``dedup``). Records without a URL stay. The reason of drops is ``seen``.

    Args:
        reference: Records, the path of a jsonl file, or an artefact of ``dedup.Index``.
    """

    def __init__(self, reference: Given, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._seen: SortedKeys | frozenset[bytes] = self._indexed(reference)

    def _indexed(self, reference: Given) -> SortedKeys | frozenset[bytes]:
        folder = Path(reference) if isinstance(reference, (str, os.PathLike)) else None
        if folder is None or not folder.is_dir():
            records: Iterable[Record] = given_records("reference", reference, [self._column])
            return frozenset(key for record in records for key in self._keys_of(record))
        built = read_facts(folder / _OPTIONS, "dedup.Index", _FORMAT)
        wanted = json.loads(json.dumps(self._options, default=_function_name))
        built = {**self._later(built), **built}
        if built != wanted:
            msg = f"the index at {folder} was built with {built}, and this operator has {wanted}"
            raise DefinitionError(msg)
        return SortedKeys(folder / _KEYS, _KEY_BYTES[self._by])

    def _later(self, built: dict[str, Any]) -> dict[str, Any]:
        """Return the defaults of the options that came after an index was built."""
        return {
            option.name: option.default
            for option in self.__dataops__.spec.options
            if option.name in self._options and option.name not in built
        }

    def forward(self, record: Record) -> Drop | None:
        seen = any(key in self._seen for key in self._keys_of(record))
        return Drop("seen") if seen else None


def _function_name(function: Any) -> str:
    """Return the name of a function, which is the same in every process."""
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
