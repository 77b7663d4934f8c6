from typing import Any

from dagster_dataops import data
from tests.each import each

KEY = "sk-ant-api03-" + "Ab1" * 30
MASKED = "<SECRET>"


def named(**more: Any) -> dict[str, Any]:
    return {"type": KEY, "id": KEY, "name": KEY, **more}


NAMES = [
    {"messages": [named(role=KEY, tool_call_id=KEY)]},
    {"messages": [{"content": [named()]}]},
    {"messages": [{"tool_calls": [named(function=named())]}]},
    {"messages": [{"function_call": named()}]},
    {"messages": [], "tools": [named(function=named())]},
]


@each("record", NAMES)
def test_names_stay(record: dict[str, Any]) -> None:
    assert data.chat.Secrets().forward(dict(record)) == record


# Objects that are not of the chat record have keys of any meaning, also those of other formats.
ANY_KEYS = [
    lambda value: {"messages": [{"tool_calls": [{"function": {"arguments": value}}]}]},
    lambda value: {"messages": [{"content": [{"type": "tool_use", "input": value}]}]},
    lambda value: {"messages": [{"content": "a", "annotations": [value]}]},
    lambda value: {"messages": [], "tools": [{"function": {"parameters": {"default": value}}}]},
    lambda value: {"messages": [], "tools": [{"name": "a", "input_schema": {"default": value}}]},
    lambda value: {"messages": [], "documents": [value]},
    lambda value: {"messages": [], "metadata": value},
]


@each("record_of", ANY_KEYS)
def test_texts_of_all_other_objects_are_masked(record_of) -> None:
    masked = data.chat.Secrets().forward(record_of({"a": named(b=[KEY])}))
    assert masked == record_of(
        {"a": dict.fromkeys(("type", "id", "name"), MASKED) | {"b": [MASKED]}}
    )
