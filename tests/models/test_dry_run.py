"""Tests of dagster_dataops.models.dry_run."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import ModelClient, Price, config, data, dry_run, pipeline


class Refusing:
    """A client that must not be called."""

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError(request)


class Short:
    """A client whose replies have ten tokens."""

    def complete(self, request: dict[str, Any]) -> dict[str, Any]:
        usage = {"prompt_tokens": 20, "completion_tokens": 10}
        message = {"content": '{"label": "a"}'}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


def cards() -> Any:
    with pipeline("cards") as ppl:
        ppl.long = data.filters.TextLength(min_chars=2)
        ppl.label = data.llm.Classify(["a", "b"], model="small", max_tokens=100)
        ppl.pairs = data.llm.QAPairs(model="small", max_tokens=100)
    return ppl


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    texts = [f"{'x' * 35}{n}" if n % 2 else "" for n in range(1000)]
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    return path


def client(complete: Any) -> ModelClient:
    return ModelClient(complete=complete, prices={"small": Price(1.0, 10.0)})


def test_calls_tokens_and_cost_are_estimated_without_a_call(
    source: Path, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(config.clients, "default", client(Refusing()))

    found = dry_run(cards(), str(source), sample=100)

    assert list(found) == ["label", "pairs"]
    label, pairs = found["label"], found["pairs"]
    assert label.calls == pytest.approx(500, abs=60)
    assert pairs.calls == label.calls * 4  # the pairs and a check for each
    assert label.tokens_out.high == label.calls * 100
    assert label.tokens_out.expected == label.calls * 25
    assert label.cost.high == pytest.approx((label.tokens_in + 1000 * label.calls) / 1e6)
    assert label.cost.expected == pytest.approx((label.tokens_in + 250 * label.calls) / 1e6)
    assert not root.exists()


def test_the_last_result_tells_the_length_of_replies(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(config.clients, "default", client(Short()))
    with pipeline("cards") as ppl:
        ppl.label = data.llm.Classify(["a", "b"], model="small", max_tokens=100)
    ppl([{"text": "a text"}])

    found = dry_run(ppl, [{"text": f"text {n}"} for n in range(1000)])["label"]

    assert found.calls == 1000
    assert found.tokens_out.expected == pytest.approx(10_000)
