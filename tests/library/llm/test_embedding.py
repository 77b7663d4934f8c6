"""Tests of dagster_dataops.library.llm.embedding."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagster_dataops import ModelClient, Price, config, data
from tests.library.llm.scripted_model import ScriptedModel
from tests.models.running_server import RunningServer, running_server
from tests.nodes import plain_counts


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    with running_server() as started:
        client = ModelClient(base_url=started.address, prices={"vectors": Price(2.0)})
        monkeypatch.setitem(config.clients, "default", client)
        yield started


def counts_of(root: Path) -> dict[str, float]:
    (manifest,) = root.rglob("*_results.jsonl.json")
    return plain_counts(json.loads(manifest.read_bytes())["counts"])


def test_many_records_are_one_request(server: RunningServer, root: Path):
    records = [{"text": f"text {n}"} for n in range(100)]

    rows = data.llm.Embed(model="vectors", batch_size=32)(records)

    assert [row["text"] for row in rows] == [record["text"] for record in records]
    assert len({tuple(row["embedding"]) for row in rows}) == 100
    stats = server.stats()
    assert stats["requests"] == 4
    assert counts_of(root) == {
        "calls": 4,
        "tokens_in": stats["tokens_in"],
        "cost": pytest.approx(2 * stats["tokens_in"] / 1e6),
    }


def test_one_bad_text_fails_alone(server: RunningServer, root: Path):
    records = [{"text": f"text {n}"} for n in range(40)]
    records[17]["text"] = "bad [[fault:400]]"

    rows = data.llm.Embed(model="vectors", batch_size=16)(records)

    assert len(rows) == 39
    (path,) = root.rglob("*_error.jsonl")
    assert json.loads(path.read_bytes())["exception"] == "BadRequestError"


def test_vectors_are_taken_from_the_stored_replies(server: RunningServer):
    records = [{"text": f"text {n}"} for n in range(40)]
    first = data.llm.Embed(model="vectors", batch_size=16)(records)

    again = data.llm.Embed(model="vectors", batch_size=16)(records)

    assert again == first
    assert server.stats()["requests"] == 3


def test_a_reply_without_all_vectors_is_asked_for_again():
    whole = {"data": [{"index": at, "embedding": [at]} for at in (1, 0)]}
    replies = iter([{"data": whole["data"][:1]}, whole])
    model = ScriptedModel(lambda *_: next(replies))

    rows = data.llm.Embed(client=model)([{"text": "a"}, {"text": "b"}])

    assert [row["embedding"] for row in rows] == [[0], [1]]
    assert len(model.requests) == 2
