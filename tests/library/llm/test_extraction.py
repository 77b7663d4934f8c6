"""Tests of dagster_dataops.library.llm.extraction."""

from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import OperatorOptionError
from tests.library.llm.scripted_model import ScriptedModel
from tests.nodes import ExecutionSettings, reconfigured

CITY = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "population": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("output_key", "wanted"),
    [
        (None, {"text": "P", "name": "Paris", "population": 2}),
        ("city", {"text": "P", "city": {"name": "Paris", "population": 2}}),
    ],
)
def test_fields_become_columns_or_one_column(output_key: Any, wanted: dict[str, Any]):
    model = ScriptedModel(lambda *_: {"name": "Paris", "population": 2})

    rows = data.llm.Extract(CITY, output_key=output_key, client=model)([{"text": "P"}])

    assert rows == [wanted]


def test_a_label_is_chosen_among_the_given_ones():
    model = ScriptedModel(lambda *_: {"label": "food"})

    rows = data.llm.Classify(["travel", "food"], client=model)([{"text": "soup"}])

    assert rows == [{"text": "soup", "label": "food"}]
    assert model.prompts[0] == (
        "Choose the label that fits the text best.\n\nLabels:\n- travel\n- food\n\nText:\nsoup"
    )


def test_several_labels_with_descriptions_may_apply():
    model = ScriptedModel(lambda *_: {"label": ["b", "a", "b"]})
    operator = data.llm.Classify({"a": "the first", "b": ""}, multiple=True, client=model)

    assert operator([{"text": "x"}])[0]["label"] == ["a", "b"]
    assert "- a: the first\n- b\n" in model.prompts[0]


def test_another_label_is_asked_for_again():
    replies = iter([{"label": "sports"}, {"label": "food"}])
    model = ScriptedModel(lambda *_: next(replies))

    assert (
        data.llm.Classify(["travel", "food"], client=model)([{"text": "x"}])[0]["label"] == "food"
    )
    assert "sports" in model.prompts[1]


def test_options_can_be_changed_later():
    operator = data.llm.Classify(["a", "b"])

    made = reconfigured(operator, {"labels": ["c", "d"]}, ExecutionSettings())

    assert made.labels == {"c": "", "d": ""}


@pytest.mark.parametrize(
    "options", [{"labels": ["a"]}, {"labels": ["a", "b"], "response_format": CITY}]
)
def test_invalid_options_are_refused(options: dict[str, Any]):
    with pytest.raises(OperatorOptionError):
        data.llm.Classify(**options)
