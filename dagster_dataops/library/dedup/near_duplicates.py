"""``dedup.NearDuplicate``: remove texts that are similar to another."""

from typing import Any, Final

from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.analysis.word_splitting import Splitter
from dagster_dataops.library.dedup.algorithms.lsh_bands import buckets_of, choose_bands
from dagster_dataops.library.dedup.algorithms.ngram_hashes import MinHash, NgramHashes
from dagster_dataops.library.dedup.algorithms.option_checks import (
    MOST_PERMUTATIONS,
    NgramSize,
    Permutations,
    Seed,
    Threshold,
    check_range,
    cluster_columns,
    rank_value,
)
from dagster_dataops.library.dedup.algorithms.representatives import (
    Linkage,
    Similarity,
)
from dagster_dataops.library.dedup.algorithms.sketch_files import packed_hashes
from dagster_dataops.library.dedup.exact import dedup
from dagster_dataops.library.dedup.similar_records import SimilarRecords
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.option_values import check_choice
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_PRESETS: Final[dict[str, dict[str, Any]]] = {
    "fineweb": {"bands": 14, "rows": 8, "ngram_size": 5, "linkage": "component"}
}


class NearDuplicate(SimilarRecords, dedup, writes=cluster_columns):  # type: ignore[call-arg]  # by the metaclass
    """Drop records whose text is similar to that of another record.

    Reads ``input_key``. The similarity of two texts is the Jaccard index of their sets of word
    ``ngram_size``-grams, ignoring case. ``words`` splits the texts, by default at punctuation. A
    text with fewer words is one n-gram; a text without words counts by its characters.

    Candidates are found by MinHash with values from ``seed``, in ``bands`` of ``rows`` values each.
    Two texts of index s agree in a band with probability ``1 - (1 - s^rows)^bands``. Without these
    options, the shape is chosen from ``permutations`` values so that pairs from ``threshold`` on
    are found with a mean probability of at least 0.988. So finding begins below the threshold. The
    default, 14 bands of 8 rows, finds 0.6 with probability 0.21, 0.7: 0.57, 0.8: 0.92, 0.9: 1.00;
    equal texts always.

    Candidates are similar; with ``verify=True``, only if the Jaccard index of their n-grams, by
    32-bit hashes, is at least ``threshold``. Then no pair below it is removed. A text is compared
    with up to 256 candidates, those first that agree in most bands.

    ``linkage="kept"`` drops a record if it is similar to a kept one, so that each dropped record is
    similar to a kept one. ``linkage="component"`` keeps one record of each connected component, as
    datatrove and Data-Juicer do: if A and B are similar, B and C, but not A and C, only A.

    ``keep="first"`` keeps the first record in input order, ``"longest"`` the one with the longest
    text, any other value the one with the largest number in the column of that name (a missing one
    is less than all numbers). Ties go to the first.

    With ``cluster_key`` nothing is dropped. That column becomes ``{"id": position of the kept
    record, "size": records, "kept": bool}``.

    ``preset="fineweb"`` has 14 bands of 8 rows, 5-grams and ``linkage="component"``; other options
    given with it count. Other than datatrove, short texts are compared, too.

    For source code, ``ignore_notices=True`` looks past the notice of a licence, which can be most
    of a small file, and ``verify=True`` makes sure that what is dropped is similar.

    The result depends only on the options and the input. The selection uses up to
    ``max_memory_mb`` MB, 8 to 40 bytes per record, and 12 bytes per band and record on disk, with
    ``verify`` 8 more per n-gram. Needs the extra ``dedup``.

    Args:
        input_key: Key of the text: a column, or a selector.
        threshold: Jaccard index, 0.01 to 1, from which pairs are to be found.
        permutations: Number of MinHash values from which bands and rows are chosen.
        bands: Number of bands; ``None`` chooses bands and rows.
        rows: MinHash values in a band; ``None`` chooses bands and rows.
        preset: ``fineweb``, or ``None``.
        ngram_size: Number of words in an n-gram.
        words: How texts are split into words: ``whitespace``, ``regex``, ``spacy``, ``jieba``,
            ``mecab`` or a function.
        ignore_notices: Whether notices of copyright and licence at the beginning of code are left
            out of the comparison, as `text.RemoveCopyrightHeader` finds them.
        verify: Whether the Jaccard index of candidates is computed.
        keep: Which record stays: ``first``, ``longest``, or a column whose largest number wins.
        linkage: ``kept`` or ``component``; ``None`` is that of the preset, else ``kept``.
        cluster_key: Column of the cluster; ``None`` drops records instead.
        seed: Another number makes other MinHash values.
        max_memory_mb: Memory in MB before files are used.
    """

    added_later = frozenset({"ignore_notices"})

    def __init__(
        self,
        input_key: str = "text",
        *,
        threshold: Threshold = 0.8,
        permutations: Permutations = 128,
        bands: Permutations | None = None,
        rows: Permutations | None = None,
        preset: str | None = None,
        ngram_size: NgramSize = 5,
        words: str | Splitter = "regex",
        ignore_notices: bool = False,
        verify: bool = False,
        keep: str = "first",
        linkage: Linkage | None = None,
        cluster_key: str | None = None,
        seed: Seed = 0,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        usual = _preset(preset)
        linkage = linkage or usual.get("linkage", "kept")
        bands, rows = bands or usual.get("bands"), rows or usual.get("rows")
        self._column = FieldKey(input_key)
        self._rank_by, self._cluster_key = keep, cluster_key
        self._ngrams = NgramHashes(ngram_size, words, ignore_notices=ignore_notices)
        self._bands, self._rows = _shape(bands, rows) or choose_bands(threshold, permutations)
        self._minhash = MinHash("dedup.NearDuplicate", self._bands * self._rows, seed)
        self._similarity = Similarity(
            bands=self._bands,
            linkage=linkage,
            limit=threshold if verify else None,
            ranked=keep != "first",
        )
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> list[Any]:
        text = self._column.text(record)
        hashes = self._ngrams.of(text)
        buckets = buckets_of(self._minhash.of(hashes), self._bands, self._rows)
        sketch: list[Any] = [b"".join(buckets).hex()]
        if self._similarity.ranked or self._similarity.limit is not None:
            sketch.append(rank_value(record, self._rank_by, text))
        if self._similarity.limit is not None:
            sketch.append(packed_hashes(hashes))
        return sketch


def _preset(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    check_choice("preset", name, _PRESETS)
    return _PRESETS[name]


def _shape(bands: int | None, rows: int | None) -> tuple[int, int] | None:
    if bands is None and rows is None:
        return None
    if bands is None or rows is None:
        msg = f"give bands and rows together, got bands={bands} and rows={rows}"
        raise DefinitionError(msg)
    check_range("bands * rows", bands * rows, 1, MOST_PERMUTATIONS)
    return bands, rows
