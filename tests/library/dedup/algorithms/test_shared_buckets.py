import struct
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
import xxhash

from dagster_dataops.library.dedup.algorithms.shared_buckets import SharedBuckets
from dagster_dataops.library.dedup.algorithms.sketch_files import SketchFiles


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
        shared = SharedBuckets(sketches, None, tmp_path / "shared", max_bytes)
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
