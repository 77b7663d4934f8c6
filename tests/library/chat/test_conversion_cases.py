"""Conversions between formats, case by case, as the documents of the formats have them."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import data
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.readers import read_agent_traces
from tests.each import each

CASES: Final = [
    json.loads(line)
    for line in Path(__file__).with_name("conversion_cases.jsonl").read_text("utf-8").splitlines()
]
WRITERS: Final = {
    "openai": data.chat.ToOpenAI,
    "sharegpt": data.chat.ToShareGPT,
    "alpaca": data.chat.ToAlpaca,
}


def converted(case: dict[str, Any], folder: Path) -> Any:
    source, options = case["input"], case["options"]
    if "events" in source:
        path = folder / f"{case['id']}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in source["events"]), "utf-8")
        return [comparable(one["messages"]) for one in read_agent_traces(str(path)).and_return()]
    if options["to"] != "messages":
        return WRITERS[options["to"]]().forward(source)
    form = "from_value" if options["from"].startswith("from/value") else options["from"]
    return data.chat.ToMessages(form).forward(source)


def comparable(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without names of results; no content is an empty text."""
    return [
        {key: value for key, value in one.items() if (one["role"], key) != ("tool", "name")}
        | {"content": one["content"] or ""}
        for one in messages
    ]


@each("case", CASES)
def test_a_conversation_is_converted(case: dict[str, Any], tmp_path: Path) -> None:
    expected = case["expected"]
    if "error" in expected:
        with pytest.raises(UnfitRecordError) as raised:
            converted(case, tmp_path)
        assert [one for one in expected["message_contains"] if one not in str(raised.value)] == []
        return
    if "records" in expected:
        expected = [comparable(one["messages"]) for one in expected["records"]]
    assert converted(case, tmp_path) == expected, case["id"]
