"""A damaged conversation is an error of the record, never another error, and never loses a turn."""

import copy
import random
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import UnfitRecordError
from tests.each import each
from tests.library.chat.damage import damaged

CALL = {"id": "c", "type": "function", "function": {"name": "t", "arguments": {"a": [1, None]}}}
AS_TEXT = {"id": "d", "function": {"name": "g", "arguments": "{}"}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}}
FILE = {"type": "file", "file": {"file_data": "data:a/b;base64,AA"}}
SOURCE = {"type": "base64", "media_type": "a/b", "data": "AA"}
RECORDS: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE, FILE]},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "r",
                "tool_calls": [CALL, AS_TEXT],
            },
            {"role": "tool", "tool_call_id": "d", "content": "1", "is_error": True},
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x"}]},
            {"role": "assistant", "content": "b", "weight": 1, "refusal": "n"},
        ],
        "tools": [{"name": "t", "parameters": {"properties": {"a": {"default": None}}}}],
    },
    {
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {"role": "user", "content": "a"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "x", "signature": "s"},
                    {"type": "text", "text": "b", "citations": [1]},
                    {"type": "tool_use", "id": "c", "name": "t", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "content": [{"type": "image", "source": SOURCE}],
                    },
                    {"type": "document", "source": {"type": "file", "file_id": "f"}, "title": "t"},
                ],
            },
        ],
        "tools": [{"name": "t", "input_schema": {}}],
    },
    {
        "conversations": [
            {"from": "human", "value": "a"},
            {"from": "function_call", "value": '[{"name": "t", "arguments": {}}]'},
            {"from": "observation", "value": "1"},
            {"from": "gpt", "value": "b"},
        ],
        "system": "s",
        "tools": '[{"name": "t"}]',
    },
    {"instruction": "a", "input": "b", "output": "c", "system": "s", "history": [["a", "b"]]},
    {
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "1"},
        ],
        "functions": [{"name": "f"}],
    },
]
LOOSE = {"order": "any", "unanswered": "keep"}
OPERATORS: list[tuple[str, dict[str, Any]]] = [
    *((f"To{name}", {"on_loss": loss})
      for name in ("Messages", "OpenAI", "Anthropic", "ShareGPT", "Alpaca")
      for loss in ("error", "drop")),
    ("ToMessages", {"arguments": "keep", "nulls": "arrow", **LOOSE}),
    ("ToMessages", {"arguments": "text", "nulls": "arrow", "flatten_text": False}),
    ("ToMessages", {"format": "from_value"}),
    ("ToMessages", {"format": "anthropic"}),
    ("Secrets", {}),
    ("Render", {}),
]  # fmt: skip


@pytest.mark.slow
@each("case", OPERATORS)
def test_a_damaged_record_is_an_error_or_converted(case) -> None:
    name, options = case
    chance = random.Random(str(case))
    operator = getattr(data.chat, name)(**options)
    read = data.chat.ToMessages(**LOOSE)
    for number in range(300):
        record = damaged(RECORDS[number % len(RECORDS)], chance)
        try:
            converted = operator.forward(copy.deepcopy(record))
        except UnfitRecordError:
            continue
        if name in {"ToOpenAI", "ToShareGPT"}:  # those that hold what they do not refuse
            assert read.forward(copy.deepcopy(converted))["messages"], record


@pytest.mark.parametrize("name", ["Validate", "Detect"])
def test_no_damaged_record_is_an_error_where_it_is_judged(name: str) -> None:
    chance = random.Random(name)
    operator = getattr(data.chat, name)()
    for number in range(600):
        operator.forward(damaged(RECORDS[number % len(RECORDS)], chance))
