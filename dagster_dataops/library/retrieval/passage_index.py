"""`PassageIndex`: passages in files, found by their words (BM25) or by their vectors."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import orjson
import xxhash

from dagster_dataops.datasets.artefact_facts import FORMAT, not_of, read_facts
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.foundation.override import override
from dagster_dataops.library.analysis.word_splitting import Splitter, words_function
from dagster_dataops.library.llm.vector_files import stored_rows
from dagster_dataops.library.option_values import needs_extra

WORDS: Final = "bm25"
VECTORS: Final = "vectors"

_FACTS: Final = "index.json"
_FORMAT: Final = 1  # of the files
_BUILDER: Final = "retrieval.Index"
_PASSAGES: Final = "passages.jsonl"  # a JSON text in each line
_STARTS: Final = "starts.npy"  # of the lines, with the end of the file
_DIGESTS: Final = "digests.npy"  # of the passages
_VECTORS_FILE: Final = "vectors.bin"
_BLOCK: Final = 8192  # vectors that are compared at once


class PassageIndex:
    """An index that was written; pickled as its folder.

    Attributes:
        kind: ``bm25`` or ``vectors``.

    Raises:
        DefinitionError: The folder has none.
        NewerVersionError: A newer version has written it.
        MissingExtraError: A package is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder, self._numpy, bm25s = Path(folder), *_packages()
        np, facts = self._numpy, _facts_in(self._folder)
        self.kind: str = facts["kind"]
        self._starts = np.load(self._folder / _STARTS)
        self._digests = np.load(self._folder / _DIGESTS)
        self._order = np.argsort(self._digests, kind="stable")
        if self.kind == VECTORS:
            shape = (len(self._digests), facts["dimensions"])
            self._vectors = np.memmap(self._folder / _VECTORS_FILE, "<f2", "r", shape=shape)
        else:
            self._split = words_function(facts["words"], facts["language"])
            self._search = bm25s.BM25.load(self._folder, mmap=True, show_progress=False)

    @override
    def __reduce__(self) -> tuple[type, tuple[Path]]:
        return PassageIndex, (self._folder,)

    def passage(self, position: int) -> str:
        """Return the passage at a position."""
        start, end = self._starts[position : position + 2]
        with (self._folder / _PASSAGES).open("rb") as file:
            file.seek(start)
            text: str = orjson.loads(file.read(end - start))
        return text

    def position_of(self, passage: str) -> int | None:
        """Return the position of a passage, whose case and white space do not count."""
        digest = _digest(passage)
        at = int(self._numpy.searchsorted(self._digests, digest, sorter=self._order))
        for position in map(int, self._order[at:]):
            if int(self._digests[position]) != digest:
                return None
            if plain(self.passage(position)) == plain(passage):
                return position
        return None

    def scores_of_text(self, query: str) -> Any:
        """Return the BM25 score of each passage for a question, as an array."""
        known = self._search.vocab_dict
        words = [known[word] for word in _words(self._split, query) if word in known]
        if not words:
            return self._numpy.zeros(len(self._digests), "f4")
        return self._search.get_scores(words)

    def scores_of_vector(self, vector: list[float]) -> Any:
        """Return the cosine of each passage and a vector, as an array."""
        np = self._numpy
        query = np.asarray(vector, "f4")
        size = self._vectors.shape[1]
        if query.shape != (size,):
            msg = f"the vector has {query.size} numbers, those of the index {size}"
            raise ValueError(msg)
        length = float(np.linalg.norm(query))
        if not 0 < length < np.inf:
            msg = "the vector must have finite numbers that are not all 0"
            raise ValueError(msg)
        blocks = range(0, len(self._vectors), _BLOCK)
        scores = [self._vectors[at : at + _BLOCK].astype("f4") @ query for at in blocks]
        return np.concatenate(scores) / length

    def best(self, scores: Any, count: int) -> list[int]:
        """Return the positions of the best scores, the best first; of equal ones the first."""
        np, size = self._numpy, len(scores)
        if count < size:
            limit = np.partition(scores, size - count)[size - count]
            chosen = np.flatnonzero(scores >= limit)
        else:
            chosen = np.arange(size)
        ranked = chosen[np.argsort(-scores[chosen], kind="stable")]
        return [int(position) for position in ranked[:count]]


def write_index(
    folder: Path, rows: Iterable[tuple[str, str | None]], words: str, language: str
) -> None:
    """Write the index of passages, each once.

    Args:
        folder: An empty folder.
        rows: Passages, each with its packed vector, see `packed_vector`; ``None`` for BM25.
        words: How texts are split into words.
        language: ISO 639-1 code of the texts.
    """
    np, bm25s = _packages()
    kept = _Passages(folder / _PASSAGES, words_function(words, language))
    packed = kept.written(rows)
    facts: dict[str, Any] = {FORMAT: _FORMAT, "words": words, "language": language}
    first = next(packed, None)
    if first is not None:
        vectors = stored_rows(folder / _VECTORS_FILE, chain([first], packed))
        facts |= {"kind": VECTORS, "dimensions": vectors.shape[1]}
    elif not kept.known:
        msg = "no record has a passage with a word; an index needs one"
        raise ValueError(msg)
    else:
        search = bm25s.BM25(backend="numpy")
        search.index((kept.ids, kept.known), show_progress=False)
        search.save(folder, show_progress=False)
        facts |= {"kind": WORDS}
    np.save(folder / _STARTS, np.asarray(kept.starts, np.int64))
    np.save(folder / _DIGESTS, np.asarray(kept.digests, np.uint64))
    (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")


class _Passages:
    """Writes passages, each once.

    Attributes:
        starts: The positions of their lines, and the end of the file.
        digests: Their digests.
        ids: The numbers of the words of each passage without a vector.
        known: The numbers by word.
    """

    def __init__(self, path: Path, split: Splitter) -> None:
        self._path, self._split = path, split
        self.starts, self.digests = [0], list[int]()
        self.ids: list[list[int]] = []
        self.known: dict[str, int] = {}

    def written(self, rows: Iterable[tuple[str, str | None]]) -> Iterator[str]:
        """Write the passages, and yield their packed vectors."""
        seen: set[bytes] = set()
        with storage(self._path, "write"), self._path.open("xb") as file:
            for text, vector in rows:
                key = xxhash.xxh3_128_digest(_encoded(text))
                if key in seen or not text.strip():
                    continue
                seen.add(key)
                line = orjson.dumps(text.encode("utf-8", "replace").decode()) + b"\n"
                self.starts.append(self.starts[-1] + file.write(line))
                self.digests.append(_digest(text))
                if vector is not None:
                    yield vector
                else:
                    words = _words(self._split, text)
                    self.ids.append([self._number(word) for word in words])

    def _number(self, word: str) -> int:
        return self.known.setdefault(word, len(self.known))


def plain(text: str) -> str:
    """Return a text without differences of case and white space."""
    return " ".join(text.casefold().split())


def _words(split: Splitter, text: str) -> list[str]:
    return [word.casefold() for word in split(text)]


def _encoded(text: str) -> bytes:
    return plain(text).encode("utf-8", "replace")


def _digest(text: str) -> int:
    return xxhash.xxh3_64_intdigest(_encoded(text))


def _facts_in(folder: Path) -> dict[str, Any]:
    facts = read_facts(folder / _FACTS, _BUILDER, _FORMAT)
    if not _is_whole(facts):
        raise not_of(folder / _FACTS, _BUILDER, "it is damaged, or of another program")
    return facts


def _is_whole(facts: dict[str, Any]) -> bool:
    """Return whether facts name all that an index of their kind needs."""
    needed = {WORDS: {"words", "language"}, VECTORS: {"dimensions"}}
    kind = facts.get("kind")
    return isinstance(kind, str) and kind in needed and facts.keys() >= needed[kind]


def _packages() -> tuple[Any, Any]:
    with needs_extra("retrieval.Index", "retrieval"):
        import bm25s
        import numpy as np
    return np, bm25s
