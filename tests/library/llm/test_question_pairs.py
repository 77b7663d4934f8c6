"""Tests of dagster_dataops.library.llm.question_pairs."""

from dagster_dataops import data
from tests.library.llm.scripted_model import ScriptedModel

PAIRS = {"pairs": [{"question": f"q{n}", "answer": f"a{n}"} for n in range(4)]}


def answered(prompt, request):
    if "Does the text" not in prompt:
        return PAIRS
    return {"quote": "words", "grounded": "q1" not in prompt}


def test_pairs_without_support_are_left_out():
    model = ScriptedModel(answered)

    rows = data.llm.QAPairs(client=model)([{"text": "facts", "id": 7}])

    assert rows == [
        {"text": "facts", "id": 7, "question": q, "answer": a, "quote": "words", "pair": number}
        for number, (q, a) in enumerate([("q0", "a0"), ("q2", "a2")])
    ]
    assert len(model.requests) == 4


def test_grounding_can_be_left_out():
    model = ScriptedModel(answered)

    rows = data.llm.QAPairs(count=2, grounded=False, client=model)([{"text": "facts"}])

    assert [row["question"] for row in rows] == ["q0", "q1"]
    assert len(model.requests) == 1


def test_a_text_without_a_pair_is_dropped():
    model = ScriptedModel(lambda *_: {"pairs": []})

    assert data.llm.QAPairs(client=model)([{"text": "facts"}]) == []
