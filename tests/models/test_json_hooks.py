"""Tests of dagster_dataops.models.json_hooks."""

import json
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import LLMDataJson
from dagster_dataops.errors import OperatorOptionError
from tests.library.llm.scripted_model import ScriptedModel
from tests.registries import OperatorRegistry


class Rate(LLMDataJson):
    """Rates a text."""

    _default_prompt = "Rate: {content}. Reply as {form}."

    def preprocess(self, data):
        return {"content": data["text"]}, {"max_new_tokens": 7}

    def verify_output(self, output, data):
        return 0 <= output["rate"] <= 5

    def postprocess(self, output, data):
        data["rate"] = output["rate"]
        return data


def rated(registry: OperatorRegistry, *replies: Any, **options: Any) -> Any:
    given = iter(replies)
    model = ScriptedModel(lambda *_: next(given))
    operator: Any = registry("data.demo")(Rate)
    return operator(client=model, **options)([{"text": "a"}]), model


def test_the_hooks_make_the_result(registry: OperatorRegistry):
    rows, model = rated(registry, {"rate": 4})

    assert rows == [{"text": "a", "rate": 4}]
    assert model.prompts == ["Rate: a. Reply as {form}."]
    assert model.requests[0]["max_tokens"] == 7
    assert model.requests[0]["temperature"] == 0.2


class CallableModel:
    """A model as LazyLLM's: an object that is called with the prompt."""

    def __call__(self, prompt: str) -> str:
        return json.dumps({"rate": len(prompt) % 5})


def test_the_model_may_be_an_object_that_is_called_with_the_prompt(registry: OperatorRegistry):
    class OwnOptions(Rate):
        def __init__(self, model=None, prompt=None, **kwargs):
            super().__init__(model=model, prompt=prompt, **kwargs)

    operator: Any = registry("data.demo")(OwnOptions)

    (row,) = operator(model=CallableModel())([{"text": "a"}])

    assert row["rate"] in range(5)
    assert operator(model=CallableModel()).model == "CallableModel"
    assert operator().model == operator(model=None).model == "gpt-5-mini"


def test_an_unusable_reply_is_asked_for_again(registry: OperatorRegistry):
    rows, model = rated(registry, "no JSON", {"rate": 9}, 'Here: {"rate": 3}')

    assert rows == [{"text": "a", "rate": 3}]
    assert len(model.requests) == 3


def test_a_record_fails_after_the_last_try(registry: OperatorRegistry, root: Path):
    rows, _ = rated(registry, {"rate": 9}, {"other": 1}, max_retries=2, _stop_after_failures=0)

    assert rows == []
    (path,) = root.rglob("*_error.jsonl")
    error = json.loads(path.read_bytes())
    assert error["exception"] == "InvalidOutputError"
    assert "verify_output refused it; KeyError: 'rate'" in error["message"]


def test_a_prompt_without_names_is_followed_by_the_values(registry: OperatorRegistry):
    _, model = rated(registry, {"rate": 1}, prompt="Rate it.")

    assert model.prompts == ['Rate it.\n\n{"content":"a"}']


def test_a_prompt_is_needed(registry: OperatorRegistry):
    class NoPrompt(LLMDataJson):
        """No prompt."""

    with pytest.raises(OperatorOptionError, match="prompt"):
        registry("data.demo")(NoPrompt)()
