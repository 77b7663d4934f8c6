import base64
import struct
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.library.dedup.algorithms import representatives
from dagster_dataops.library.dedup.algorithms.representatives import (
    Linkage,
    Representatives,
    Similarity,
)
from tests.examples import at_most

BANDS = 3
RECORDS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), min_size=BANDS, max_size=BANDS),
        st.integers(0, 2),
        st.sets(st.integers(0, 5), min_size=1),
    ).map(lambda record: (*record[:2], record[2] | {100 + hash(tuple(record[0])) % 2**20})),
    max_size=14,
)  # records with equal hashes have equal buckets


def sketch(record: Any) -> list[Any]:
    buckets, value, hashes = record
    named = (xxhash.xxh3_64_intdigest(bytes([n]), seed=band) for band, n in enumerate(buckets))
    packed = np.array(sorted(hashes), "<u4").tobytes()
    return [struct.pack(f"<{BANDS}Q", *named).hex(), value, base64.b64encode(packed).decode()]


def found(records: list[Any], similarity: Similarity, max_bytes: int) -> list[int]:
    with TemporaryDirectory() as folder:
        made = Representatives(map(sketch, records), similarity, Path(folder), max_bytes)
        return [kept for _, kept in made]


def similar(one: Any, other: Any, limit: float | None) -> bool:
    near = any(a == b for a, b in zip(one[0], other[0], strict=True))
    if limit is None or not near:
        return near
    return len(one[2] & other[2]) / len(one[2] | other[2]) >= limit


def brute_force(records: list[Any], similarity: Similarity) -> list[bool]:
    """Return which records are kept, by comparing all pairs."""
    order = list(range(len(records)))
    if similarity.ranked:
        order.sort(key=lambda position: -records[position][1])
    groups: list[list[int]] = []  # the kept record first
    for position in order:
        near = [
            group
            for group in groups
            if any(
                similar(records[position], records[other], similarity.limit)
                for other in (group if similarity.linkage == "component" else group[:1])
            )
        ]
        groups = [group for group in groups if group not in near]
        if similarity.linkage == "component":
            groups.append([*sorted(chain(*near), key=order.index), position])
        else:
            groups += near or [[position]]
    return [position in {group[0] for group in groups} for position in range(len(records))]


@pytest.mark.parametrize("linkage", ["kept", "component"])
@given(
    records=RECORDS,
    limit=st.sampled_from([None, 0.3, 0.6, 1.0]),
    ranked=st.booleans(),
    max_bytes=st.sampled_from([100, 400, 1 << 20]),
)
@settings(max_examples=at_most(60))
def test_the_kept_records_are_those_of_all_pairs(
    records: list[Any], linkage: Linkage, limit: float | None, ranked: bool, max_bytes: int
) -> None:
    similarity = Similarity(bands=BANDS, linkage=linkage, limit=limit, ranked=ranked)
    kept = [one == at for at, one in enumerate(found(records, similarity, max_bytes))]
    assert kept == brute_force(records, similarity)


def test_a_dropped_record_takes_no_bucket_unless_components_are_kept() -> None:
    linked = [([1, 0, 0], 0, {1}), ([1, 2, 1], 0, {1}), ([9, 2, 2], 0, {1})]
    assert found(linked, Similarity(bands=3, linkage="kept"), 1000) == [0, 0, 2]
    assert found(linked, Similarity(bands=3, linkage="component"), 1000) == [0, 0, 0]


def test_sizes_count_the_represented_records(tmp_path: Path) -> None:
    records = [([1, 0, 0], 0, {1}), ([2, 1, 1], 0, {1}), ([1, 2, 2], 0, {1})]
    similarity = Similarity(bands=3, linkage="kept")
    made = Representatives(map(sketch, records), similarity, tmp_path, 1000)
    assert list(made.sizes(tmp_path / "sizes")[:3]) == [2, 1, 0]


def test_the_comparisons_of_a_record_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def measure(one: Any, other: Any, limit: float) -> float:
        compared.append(1)
        return representatives.jaccard(one, other, limit)

    similarity = Similarity(bands=3, linkage="kept", limit=0.5, measure=measure)
    crowd = [([1, 1, 1], 0, {10 * n, 10 * n + 1}) for n in range(200)]
    monkeypatch.setattr(representatives, "MOST_COMPARED", 5)
    assert found(crowd, similarity, 1 << 20) == list(range(200))
    assert len(compared) < 5 * 200
    assert found([*crowd, crowd[3]], similarity, 1 << 20)[-1] == 3
