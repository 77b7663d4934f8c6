import random
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError
from dagster_dataops.library.dedup.simhash import _simhash  # the definition under test


def text_of(seed: int, words: int = 300) -> list[str]:
    generator = random.Random(seed)
    return [f"w{generator.randrange(10_000)}" for _ in range(words)]


def brute_force(operator: Any, records: list[dict[str, Any]], distance: int) -> list[Any]:
    kept: list[tuple[int, dict[str, Any]]] = []
    for record in records:
        value = _simhash(operator._ngrams.of(record["text"]))
        if all((value ^ other).bit_count() > distance for other, _ in kept):
            kept.append((value, record))
    return [record for _, record in kept]


@pytest.mark.parametrize(("distance", "blocks"), [(0, 1), (4, 6), (10, 12)])
def test_exactly_the_pairs_within_the_distance_are_found(
    root: Path, distance: int, blocks: int
) -> None:
    records = []
    for number in range(200):
        words = text_of(number % 60)
        generator = random.Random(number)
        for _ in range(generator.randrange(6)):
            words[generator.randrange(len(words))] = f"x{number}"
        records.append({"text": " ".join(words)})
    operator = data.dedup.SimHash(max_distance=distance, blocks=blocks)
    expected = brute_force(operator, records, distance)
    assert operator(records) == expected
    assert 60 <= len(expected) < 200


def test_each_bit_is_that_of_most_hashes() -> None:
    import numpy as np

    assert _simhash(np.array([0b0111, 0b1011, 0b0010], np.uint64)) == 0b0011
    assert _simhash(np.array([1 << 63], np.uint64)) == 1 << 63


def test_too_few_blocks_are_refused() -> None:
    with pytest.raises(DefinitionError, match="blocks must be between 5"):
        data.dedup.SimHash(blocks=4)
    with pytest.raises(DefinitionError, match="choices of blocks must be between 1 and 1000"):
        data.dedup.SimHash(blocks=16, max_distance=8)


def test_with_a_cluster_key_records_are_marked_instead_of_dropped() -> None:
    records = [{"text": "a b c d e f"}, {"text": "g"}, {"text": "A b c, d e f"}]
    marked = data.dedup.SimHash(cluster_key="cluster")(records)
    assert [record["cluster"] for record in marked] == [
        {"id": 0, "size": 2, "kept": True},
        {"id": 1, "size": 1, "kept": True},
        {"id": 0, "size": 2, "kept": False},
    ]
