"""Tests of dagster_dataops.library.llm.semantic_dedup and vector_files."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import ModelClient, Price, config, data
from dagster_dataops.errors import DatasetOperatorError
from dagster_dataops.library.llm.vector_files import packed_vector, tables_for
from tests.library.llm.scripted_model import ScriptedModel
from tests.models.running_server import running_server

np = pytest.importorskip("numpy")


def corpus(count: int, width: int = 24) -> list[dict[str, Any]]:
    generator = np.random.default_rng(3)
    centres = generator.standard_normal((count // 3, width))
    chosen = generator.integers(0, len(centres), count)
    noise = generator.standard_normal((count, width)) * generator.uniform(0, 0.4, (count, 1))
    return [
        {"n": number, "vector": vector.tolist()}
        for number, vector in enumerate(centres[chosen] + noise)
    ]


def brute_force(records: list[dict[str, Any]], threshold: float) -> list[int]:
    kept: list[int] = []
    vectors = np.array([record["vector"] for record in records])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for number, vector in enumerate(vectors):
        if not kept or (vectors[kept] @ vector).max() < threshold:
            kept.append(number)
    return kept


def kept_by(records: list[dict[str, Any]], **options: Any) -> list[int]:
    rows = data.llm.SemanticDedup(vector_key="vector", **options)(records)
    return [row["n"] for row in rows]


@pytest.mark.parametrize("threshold", [0.8, 0.95])
def test_every_pair_is_compared(threshold: float):
    records = corpus(1500)
    expected = brute_force(records, threshold)

    assert kept_by(records, threshold=threshold) == expected
    assert 400 < len(expected) < 1400


def test_beyond_the_limit_nearly_all_pairs_are_found_and_no_other_is_dropped():
    records = corpus(1500)
    expected = brute_force(records, 0.9)
    found = kept_by(records, threshold=0.9, exact_up_to=100)

    missed = (len(found) - len(expected)) / (len(records) - len(expected))
    assert 0 <= missed < 0.02
    assert set(brute_force([records[n] for n in found], 0.9)) <= set(range(len(found)))
    assert found[:3] == expected[:3]


@pytest.mark.parametrize("exact_up_to", [0, 100])
def test_equal_and_opposite_vectors(exact_up_to: int):
    vectors = [[1, 2, 3], [2, 4, 6], [-1, -2, -3], [1, 2, 3]]
    records = [{"n": number, "vector": one} for number, one in enumerate(vectors)]

    assert kept_by(records, threshold=1.0, exact_up_to=exact_up_to) == [0, 2]


def test_clusters_are_written_instead():
    records = [{"n": 0, "vector": [1, 0]}, {"n": 1, "vector": [0, 1]}, {"n": 2, "vector": [9, 0]}]

    rows = data.llm.SemanticDedup(vector_key="vector", cluster_key="like")(records)

    assert [row["like"] for row in rows] == [
        {"id": 0, "kept": True},
        {"id": 1, "kept": True},
        {"id": 0, "kept": False},
    ]


def test_a_record_without_a_vector_fails_alone(root: Path):
    records = [{"n": 0, "vector": [1.0, 0]}, {"n": 1}, {"n": 2, "vector": [0, 0]}]

    assert kept_by(records) == [0]

    (path,) = root.rglob("*_error.jsonl")
    assert [json.loads(line)["index"] for line in path.read_text().splitlines()] == [1, 2]


def test_vectors_of_two_lengths_are_refused():
    with pytest.raises(DatasetOperatorError, match="vector 1 has 3 numbers, others 2"):
        kept_by([{"n": 0, "vector": [1.0, 0]}, {"n": 1, "vector": [0, 0, 1]}])


def test_texts_get_their_vectors_from_the_model_and_a_second_run_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, root: Path
):
    with running_server() as server:
        client = ModelClient(base_url=server.address, prices={"vectors": Price(2.0)})
        monkeypatch.setitem(config.clients, "default", client)
        records = [{"text": f"text {n % 40}"} for n in range(100)]
        unique = data.llm.SemanticDedup(model="vectors", batch_size=25)

        rows = unique(records)
        stats = server.stats()
        again = data.llm.SemanticDedup(model="vectors", batch_size=25, threshold=0.99)(records)

        assert [row["text"] for row in rows] == [f"text {n}" for n in range(40)]
        assert again == rows
        assert stats["requests"] == server.stats()["requests"] == 4
    (manifest,) = root.rglob("*_results.jsonl.json")
    counts = json.loads(manifest.read_bytes())["counts"]
    assert counts["calls_replayed"] == 4


def test_the_cost_is_counted(monkeypatch: pytest.MonkeyPatch, root: Path):
    model = ScriptedModel(
        lambda *_: {"data": [{"index": 0, "embedding": [1, 2]}], "usage": {"prompt_tokens": 7}}
    )
    client = ModelClient(complete=model, prices={"m": Price(1.0)})

    data.llm.SemanticDedup(model="m", client=client)([{"text": "a"}])

    (manifest,) = root.rglob("*_results.jsonl.json")
    assert json.loads(manifest.read_bytes())["counts"]["cost"] == pytest.approx(7e-6)


@pytest.mark.parametrize("vector", [[], [0.0], [math.nan], "a", None, [[1.0]], [math.inf]])
def test_what_is_no_vector_is_refused(vector: Any):
    with pytest.raises(ValueError, match="vector|could not convert"):
        packed_vector(vector)


def test_a_lower_threshold_needs_more_tables():
    found = [tables_for(threshold) for threshold in (1.0, 0.99, 0.95, 0.9, 0.3)]

    assert found == sorted(found)
    assert (found[0], found[-1]) == (1, 256)
