"""Tests of dagster_dataops.library.llm.self_consistency."""

import json
from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, OperatorOptionError
from tests.library.llm.scripted_model import ScriptedModel


def model_of(*texts: str) -> ScriptedModel:
    replies = iter(texts)
    return ScriptedModel(lambda *_: next(replies))


def test_the_most_frequent_answer_is_kept():
    model = model_of("so it is 7", "2 + 2\n4", "I think 4.", "no idea")

    rows = data.llm.SelfConsistency(samples=4, client=model)([{"question": "2 + 2?"}])

    assert rows == [
        {"question": "2 + 2?", "answer": "4", "agreement": 0.5, "reasoning": "2 + 2\n4"}
    ]
    assert len(model.requests) == 4


def test_a_record_without_agreement_is_dropped():
    model = model_of("1", "2", "3")

    operator = data.llm.SelfConsistency(samples=3, min_ratio=0.5, client=model)

    assert operator([{"question": "?"}]) == []


def test_a_record_whose_samples_have_no_answer_fails(root: Path):
    operator = data.llm.SelfConsistency(samples=2, client=model_of("none", "none", "1", "1"))

    assert len(operator([{"question": "a"}, {"question": "b"}])) == 1
    (path,) = root.rglob("*_error.jsonl")
    assert json.loads(path.read_bytes())["exception"] == "InvalidOutputError"


def test_invalid_options_are_refused():
    with pytest.raises(DefinitionError, match="regular expression"):
        data.llm.SelfConsistency(answer="(")
    with pytest.raises(OperatorOptionError, match="group"):
        data.llm.SelfConsistency(answer="a")
