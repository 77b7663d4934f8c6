"""``images.NearDuplicate``: remove images that look like another."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from annotated_types import Interval

from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.dedup.algorithms.option_checks import cluster_columns, column_rank
from dagster_dataops.library.dedup.algorithms.representatives import Linkage
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.images.image_files import images
from dagster_dataops.library.images.image_operator import ImageOperator
from dagster_dataops.library.images.near_hashes import first_connected, nearest_kept
from dagster_dataops.library.images.perceptual_hashes import HashKind, hash_function
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.options.ranges import PositiveInt
from dagster_dataops.records import Record

_Distance: TypeAlias = Annotated[int, Interval(ge=0, le=15)]
_LARGEST: Final = "largest"
_DIGITS: Final = 16
_HASH: Final = re.compile(r"[0-9a-fA-F]{16}")


class NearDuplicate(ImageOperator, images, writes=cluster_columns):
    """Drop records whose image looks like that of another record.

    Reads the file in ``input_key="file"``, and computes its hash as `PerceptualHash` does; or, with
    ``image_hash_key``, reads the hash in that column, and no file. Images are similar if at most
    ``max_distance`` of the 64 bits differ. All similar pairs are found: no hash is left out of
    the comparison, however many there are.

    ``linkage="kept"`` drops a record if it is similar to a kept one, so that each dropped record is
    similar to a kept one. ``linkage="component"`` keeps one record of each connected component: if
    A and B are similar, B and C, but not A and C, only A.

    ``keep="first"`` keeps the first record in input order, ``"largest"`` the one with most pixels
    (which needs the file), any other value the one with the largest number in the column of that
    name (a missing one is less than all numbers). Ties go to the first.

    With ``cluster_key`` nothing is dropped. That column becomes ``{"id": position of the kept
    record, "size": records, "kept": bool}``.

    The result depends only on the options and the input. A hash is compared with all kept ones, or
    with those that share some of its bits, where this is faster and their lists fit into
    ``max_memory_mb`` MB; 60 bytes a record are needed besides. Needs the extra ``images``.

    Source: Zauner et al. 2010 for the hashes; Norouzi et al. 2012, arXiv:1307.2982 for the search.
    ``image_deduplicator`` of Data-Juicer drops equal hashes only.

    Args:
        by: ``phash``, ``dhash`` or ``ahash``; see `PerceptualHash`.
        max_distance: Most bits in which similar hashes differ, 0 to 15.
        image_hash_key: Column of the hash; ``None`` computes it.
        keep: Which record stays: ``first``, ``largest``, or a column whose largest number wins.
        linkage: ``kept`` or ``component``.
        cluster_key: Column of the cluster; ``None`` drops records instead.
        max_memory_mb: Memory in MB for sorted hashes.
    """

    def __init__(
        self,
        input_key: str = "file",
        *,
        by: HashKind = "phash",
        max_distance: _Distance = 4,
        image_hash_key: str | None = None,
        keep: str = "first",
        linkage: Linkage = "kept",
        cluster_key: str | None = None,
        max_memory_mb: PositiveInt = 256,
        **kwargs: Any,
    ) -> None:
        super().__init__(input_key=input_key, **kwargs)
        with needs_extra("images.NearDuplicate", "images"):
            from numpy import bitwise_count  # noqa: F401 - of numpy 2
        self._hash, self._rank_by = hash_function(by), keep
        self._hash_key = None if image_hash_key is None else FieldKey(image_hash_key)
        self._owners = nearest_kept if linkage == "kept" else first_connected
        self._distance, self._cluster_key = max_distance, cluster_key
        self._max_bytes = max_memory_mb << 20

    def sketch(self, record: Record) -> list[Any]:
        reads_file = self._hash_key is None or self._rank_by == _LARGEST
        image: Any = self._images.of(record) if reads_file else None
        if self._hash_key is None:
            value = f"{self._hash(image):016x}"
        else:
            value = _checked_hash(self._hash_key.name, self._hash_key.value(record))
        if self._rank_by == _LARGEST:
            width, height = image.size
            return [value, width * height]
        return [value] if self._rank_by == "first" else [value, column_rank(record, self._rank_by)]

    def keep(self, sketches: Iterator[list[Any]], scratch: Path) -> Iterator[Any]:
        del scratch
        owners = self._representatives(sketches)
        if self._cluster_key is None:
            return (position == kept for position, kept in enumerate(owners.tolist()))
        return _clusters(owners)

    def _representatives(self, sketches: Iterator[list[Any]]) -> Any:
        """Return the position of the record that each one is represented by."""
        import numpy as np

        hashes, ranks = np.zeros(1024, np.uint64), np.zeros(1024)
        count = 0
        for count, sketch in enumerate(sketches, 1):
            if count > len(hashes):
                hashes, ranks = np.resize(hashes, 2 * count), np.resize(ranks, 2 * count)
            hashes[count - 1] = int(sketch[0], _DIGITS)
            ranks[count - 1] = sketch[-1] if len(sketch) > 1 else 0
        order = np.argsort(-ranks[:count], kind="stable")
        distinct, firsts, numbers = np.unique(
            hashes[:count][order], return_index=True, return_inverse=True
        )
        by_rank = np.argsort(firsts)
        owners = self._owners(distinct[by_rank], self._distance, self._max_bytes)
        place = np.argsort(by_rank)  # of a distinct hash in the order of ranks
        nearest = np.zeros(count, np.int64)
        nearest[order] = order[firsts[by_rank[owners[place[numbers]]]]]
        return nearest

    def change(self, record: Record, cluster: dict[str, Any]) -> Record:
        return {**record, str(self._cluster_key): cluster}


def _clusters(owners: Any) -> Iterator[dict[str, Any]]:
    import numpy as np

    sizes = np.bincount(owners, minlength=len(owners))
    for position, kept in enumerate(owners.tolist()):
        yield {"id": kept, "size": int(sizes[kept]), "kept": position == kept}


def _checked_hash(key: str, value: object) -> str:
    """Return a hash of a record."""
    if isinstance(value, str) and _HASH.fullmatch(value):
        return value
    msg = f"column {key!r} must hold a hash of {_DIGITS} hexadecimal digits; found {value!r:.60}"
    raise UnfitRecordError(msg)
