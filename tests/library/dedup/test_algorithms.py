"""Algorithms of the group for more data than memory holds."""

import base64
import struct
from collections import defaultdict
from contextlib import closing
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.library.dedup.algorithms import representatives
from dagster_dataops.library.dedup.algorithms.lsh_bands import buckets_of, choose_bands
from dagster_dataops.library.dedup.algorithms.representatives import (
    Linkage,
    Representatives,
    Similarity,
)
from dagster_dataops.library.dedup.algorithms.shared_buckets import SharedBuckets
from dagster_dataops.library.dedup.algorithms.similar_partitions import SimilarInPartitions
from dagster_dataops.library.dedup.algorithms.sketch_files import SketchFiles
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
        made = Representatives.of(map(sketch, records), similarity, Path(folder), max_bytes)
        return [kept for _, kept in made]


def similar(one: Any, other: Any, limit: float | None) -> bool:
    near = any(a == b for a, b in zip(one[0], other[0], strict=True))
    if limit is None or not near:
        return near
    return len(one[2] & other[2]) / len(one[2] | other[2]) >= limit


def brute_force(records: list[Any], similarity: Similarity) -> list[bool]:
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


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["kept", "component"])
@given(
    ranges=st.lists(RECORDS, min_size=1, max_size=4),
    limit=st.sampled_from([None, 0.3, 0.6, 1.0]),
    ranked=st.booleans(),
    clusters=st.booleans(),
    memory=st.sampled_from([50, 400, 1 << 20]),
    slices=st.integers(1, 3),
)
@settings(max_examples=at_most(60))
def test_partitions_of_the_buckets_find_the_same_records(
    linkage: Linkage,
    ranges: list[list[Any]],
    limit: float | None,
    ranked: bool,
    clusters: bool,
    memory: int,
    slices: int,
) -> None:
    similarity = Similarity(bands=BANDS, linkage=linkage, limit=limit, ranked=ranked)
    partitioning = SimilarInPartitions(similarity, memory, clusters=clusters)
    split = [partitioning.split(map(sketch, records), BANDS * slices) for records in ranges]
    decided: list[list[bytes]] = []
    for number in range(BANDS * slices):
        with TemporaryDirectory() as folder:
            parts = [of_range[number] for of_range, _ in split]
            decided.append(list(partitioning.decide(parts, Path(folder), memory)))
    rests = [rest for _, rest in split]
    with TemporaryDirectory() as folder:
        joined = list(partitioning.join(decided, rests, Path(folder), memory))
    verdicts = [
        list(partitioning.verdicts([of], rest)) for of, rest in zip(joined, rests, strict=True)
    ]
    owners = found(list(chain(*ranges)), similarity, 1 << 20)
    expected: list[Any] = [own == at for at, own in enumerate(owners)]
    if clusters:
        expected = [
            {"id": own, "size": owners.count(own), "kept": kept}
            for own, kept in zip(owners, expected, strict=True)
        ]
    assert list(chain(*verdicts)) == expected
    assert [len(of_range) for of_range in verdicts] == list(map(len, ranges))


def test_a_dropped_record_takes_no_bucket_unless_components_are_kept() -> None:
    linked = [([1, 0, 0], 0, {1}), ([1, 2, 1], 0, {1}), ([9, 2, 2], 0, {1})]
    assert found(linked, Similarity(bands=3, linkage="kept"), 1000) == [0, 0, 2]
    assert found(linked, Similarity(bands=3, linkage="component"), 1000) == [0, 0, 0]


def test_sizes_count_the_represented_records(tmp_path: Path) -> None:
    records = [([1, 0, 0], 0, {1}), ([2, 1, 1], 0, {1}), ([1, 2, 2], 0, {1})]
    similarity = Similarity(bands=3, linkage="kept")
    made = Representatives.of(map(sketch, records), similarity, tmp_path, 1000)
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


@pytest.mark.parametrize("max_bytes", [500, 5000, 1 << 20])
def test_records_are_listed_with_the_buckets_they_share(tmp_path: Path, max_bytes: int) -> None:
    random = Random(1)
    rows = [[random.randrange(150) for _ in range(3)] for _ in range(200)]
    packed = [
        struct.pack(
            "<3Q", *(xxhash.xxh3_64_intdigest(bytes([n]), band) for band, n in enumerate(row))
        )
        for row in rows
    ]
    with closing(SketchFiles(tmp_path, 3)) as sketches:
        sketches.write([row.hex()] for row in packed)
        shared = SharedBuckets(
            sketches.shared(max_bytes), sketches.count, None, tmp_path / "shared", max_bytes
        )
        found = list(shared.by_rank())
    expected = defaultdict(set)
    for at, row in enumerate(rows):
        for band, name in enumerate(row):
            expected[band, name].add(at)
    groups = defaultdict(set)
    for rank, numbers in found:
        for number in numbers:
            groups[number].add(rank)
    several = sorted(sorted(group) for group in expected.values() if len(group) > 1)
    assert sorted(sorted(group) for group in groups.values()) == several
    assert [rank for rank, _ in found] == sorted({at for group in several for at in group})
    assert (shared.count, shared.pairs) == (len(several), sum(map(len, several)))
    assert list((tmp_path / "shared").iterdir()) == []


@pytest.mark.parametrize(
    ("threshold", "permutations", "shape"),
    [(0.8, 128, (14, 8)), (0.5, 128, (32, 4)), (1.0, 16, (1, 16)), (0.5, 1, (1, 1))],
)
def test_the_shape_follows_from_the_threshold(threshold, permutations, shape) -> None:
    assert choose_bands(threshold, permutations) == shape


@given(st.floats(0.01, 1.0), st.integers(1, 64))
def test_a_shape_never_needs_more_rows_than_there_are(threshold, permutations) -> None:
    bands, rows = choose_bands(threshold, permutations)
    assert 1 <= bands * rows <= permutations


def test_signatures_share_the_buckets_of_the_bands_in_which_they_agree() -> None:
    one = buckets_of([1, 2, 3, 4, 5, 6, 9], 3, 2)
    other = buckets_of([1, 2, 3, 5, 5, 6, 8], 3, 2)
    assert [a == b for a, b in zip(one, other, strict=True)] == [True, False, True]
    assert len(set(buckets_of([7, 7, 7, 7], 2, 2))) == 2
