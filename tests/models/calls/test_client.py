"""Tests of dagster_dataops.models.calls.client."""

import pickle
from typing import Any

import pytest

from dagster_dataops import ModelClient, Price
from dagster_dataops.errors import ConfigurationError


def test_the_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert ModelClient().address == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway/v1")
    assert ModelClient().address == ModelClient().server.address == "http://gateway/v1"
    monkeypatch.setenv("DATAOPS_LLM_BASE_URL", "http://here/v1/")

    assert (ModelClient().address, ModelClient().key) == ("http://here/v1", "k")
    given = ModelClient(base_url="http://there/v1", api_key="own")
    assert (given.address, given.key) == ("http://there/v1", "own")


def test_no_key_is_shown():
    assert "secret" not in repr(ModelClient(api_key="secret", headers={"x-key": "secret"}))


def test_a_client_can_be_sent_to_another_process():
    client = ModelClient(api_key="k", prices={"m": Price(1.0)}, requests_per_minute=5)

    assert pickle.loads(pickle.dumps(client)) == client


@pytest.mark.parametrize(
    "options",
    [
        {"requests_per_minute": -1},
        {"tokens_per_minute": -1},
        {"max_in_flight": 0},
        {"tries": 0},
        {"timeout": 0},
        {"longest_wait": -1},
        {"max_cost": -1},
        {"mode": "other"},
        {"mode": "replay"},
        {"replies": "a.jsonl"},
    ],
)
def test_invalid_values_are_refused(options: dict[str, Any]):
    with pytest.raises(ConfigurationError, match=r"ModelClient\."):
        ModelClient(**options)
