"""Tests of dagster_dataops.library.llm.judging."""

import json
from pathlib import Path

import pytest

from dagster_dataops import data
from dagster_dataops.errors import OperatorOptionError
from tests.library.llm.scripted_model import ScriptedModel


def by_length(prompt, request):
    return {"reason": "by length", "score": min(5, len(prompt.rsplit("\n", 1)[1]))}


def test_texts_with_a_low_score_are_dropped_for_a_reason(root: Path):
    model = ScriptedModel(by_length)

    rows = data.llm.Judge("Is it long?", min_score=3, client=model)(
        [{"text": "a"}, {"text": "abcd"}]
    )

    assert rows == [{"text": "abcd", "score": 4, "score_reason": "by length"}]
    (manifest,) = root.rglob("*_results.jsonl.json")
    assert json.loads(manifest.read_bytes())["drops"] == {"low_score": 1}
    assert "a score from 1 to 5, where 5 is best" in model.prompts[0]


def test_a_score_outside_of_the_scale_is_asked_for_again():
    replies = iter([{"reason": "", "score": 9}, {"reason": "", "score": 2}])
    model = ScriptedModel(lambda *_: next(replies))

    assert data.llm.Judge("Good?", scale=[0, 3], client=model)([{"text": "a"}])[0]["score"] == 2


def test_the_best_and_the_worst_answer_are_kept():
    answers = iter(["a", "abc", "ab"])
    model = ScriptedModel(
        lambda prompt, request: (
            by_length(prompt, request) if "response_format" in request else next(answers)
        )
    )

    rows = data.llm.PreferencePairs(samples=3, client=model)([{"prompt": "Why?"}])

    assert rows == [{"prompt": "Why?", "chosen": "abc", "rejected": "a", "margin": 2}]
    assert [request["temperature"] for request in model.requests] == [1.0] * 3 + [0] * 3


def test_answers_of_one_score_are_no_pair():
    model = ScriptedModel(
        lambda prompt, request: (
            {"reason": "", "score": 3} if "response_format" in request else "the same"
        )
    )

    assert data.llm.PreferencePairs(client=model)([{"prompt": "Why?"}]) == []


@pytest.mark.parametrize("scale", [(5, 1), (3, 3)])
def test_a_scale_goes_up(scale):
    with pytest.raises(OperatorOptionError, match="scale"):
        data.llm.Judge("Good?", scale=scale)
