from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dagster_dataops import data
from dagster_dataops.errors import DatasetOperatorError, DefinitionError


def centers(vectors: Any, number: int) -> list[int]:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    chosen: list[int] = []
    for _ in range(number):
        left = [at for at in range(len(units)) if at not in chosen]
        chosen.append(
            min(left, key=lambda at: max((units[at] @ units[one] for one in chosen), default=0))
        )
    return sorted(chosen)


@pytest.mark.parametrize("number", [0, 1, 2, 7, 30])
def test_the_kept_vectors_are_the_centers(root: Path, number: int) -> None:
    vectors = np.random.default_rng(number).standard_normal((30, 4)).astype("f2").astype("f8")
    records = [{"id": at, "vector": vector.tolist()} for at, vector in enumerate(vectors)]
    kept = data.sample.Diversity(number, vector_key="vector")(records)
    assert [record["id"] for record in kept] == centers(vectors, number)


def test_of_similar_texts_one_is_kept(root: Path) -> None:
    topics = [[f"{topic}{word}" for word in range(30)] for topic in "abc"]
    records = [
        {"id": f"{topic[0]}.{change}", "text": " ".join([*topic[:20], f"x{change}", *topic[20:]])}
        for change in range(4)
        for topic in topics
    ]
    for options in ({"count": 3}, {"ratio": 0.25}):
        kept = data.sample.Diversity(**options)(records)
        assert len(kept) == 3
        assert {record["id"][0] for record in kept} == {"a", "b", "c"}
        assert kept[0] == records[0]


@pytest.mark.usefixtures("one_core")
@pytest.mark.slow
def test_a_larger_number_keeps_the_same_and_more(root: Path) -> None:
    records = [{"text": f"{n} {n % 3} {n % 5} words of a text"} for n in range(20)]
    kept = [data.sample.Diversity(k)(records) for k in range(1, 22)]
    for fewer, more in pairwise(kept):
        assert all(record in more for record in fewer)
    assert kept[-1] == records
    assert data.sample.Diversity(3)([]) == []


def test_records_without_a_vector_fail_and_vectors_have_one_length(root: Path) -> None:
    operator = data.sample.Diversity(2, vector_key="v")
    assert operator([{"v": [1, 0]}, {"v": None}, {"v": "a"}, {"v": [0, 1]}]) == [
        {"v": [1, 0]},
        {"v": [0, 1]},
    ]
    with pytest.raises(DatasetOperatorError, match="vector 1 has 3 numbers, others 2"):
        operator([{"v": [1, 0]}, {"v": [1, 0, 0]}])


@pytest.mark.parametrize("options", [{}, {"count": 1, "ratio": 0.5}, {"count": -1}, {"ratio": 2}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=r"ratio|'count' must be at least 0"):
        data.sample.Diversity(**options)
    with pytest.raises(DefinitionError, match="ngram_size"):
        data.sample.Diversity(1, ngram_size=0)
