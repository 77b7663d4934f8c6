"""Conversations in every format, as hypothesis strategies, and their conversions."""

import copy
import json
from typing import Any

from hypothesis import strategies as st

from dagster_dataops import data

TEXTS = st.text("ab \n:é", max_size=6)
PROMPTS = TEXTS.filter(bool)
OTHERS = st.dictionaries(st.sampled_from(["id", "source"]), st.integers(), max_size=2)
NAMES = st.sampled_from(["tide", "glocke", "天気"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([1.0, -0.5])
    | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=2)
SCHEMAS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "description": TEXTS,
        "parameters": st.just({"type": "object", "properties": {"a": {"default": None}}}),
    },
)


@st.composite
def messages(draw: Any, tools: bool = True) -> list[dict[str, Any]]:
    """Return messages of texts; results of tools answer calls in the text of the assistant."""
    found = []
    if draw(st.booleans()):
        found.append({"role": "system", "content": draw(PROMPTS)})
    for _ in range(draw(st.integers(1, 3))):
        found.append({"role": "user", "content": draw(TEXTS)})
        found.append({"role": "assistant", "content": draw(TEXTS)})
        if tools and draw(st.booleans()):
            contents = draw(st.lists(TEXTS, min_size=1, max_size=2))
            found += [{"role": "tool", "content": text, "name": "t"} for text in contents]
            found.append({"role": "assistant", "content": draw(TEXTS), "weight": 1})
    return found[:-1] if draw(st.booleans()) and found[-2]["role"] == "user" else found


@st.composite
def called(draw: Any, text_beside: bool = True) -> dict[str, Any]:
    """Return a chat record in normal form with calls, their results and schemas of tools.

    Args:
        draw: Of hypothesis.
        text_beside: Whether turns with calls may have a text, too, and reasoning.
    """
    found: list[dict[str, Any]] = []
    if draw(st.booleans()):
        found.append({"role": "system", "content": draw(PROMPTS)})
    number = 0
    for _ in range(draw(st.integers(1, 2))):
        found.append({"role": "user", "content": draw(PROMPTS)})
        for _ in range(draw(st.integers(0, 2))):
            calls = [_call(draw, number + i + 1) for i in range(draw(st.integers(1, 3)))]
            number += len(calls)
            turn = {"role": "assistant", "content": None, "tool_calls": calls}
            if text_beside and draw(st.booleans()):
                turn |= {"content": draw(PROMPTS), "reasoning_content": draw(PROMPTS)}
            found.append(turn)
            found += [
                {"role": "tool", "content": draw(TEXTS), "tool_call_id": call["id"]}
                for call in calls
            ]
        found.append({"role": "assistant", "content": draw(PROMPTS)})
    record: dict[str, Any] = {**draw(OTHERS), "messages": found}
    if draw(st.booleans()):
        schemas = draw(st.lists(SCHEMAS, max_size=2))
        record["tools"] = [{"type": "function", "function": one} for one in schemas]
    return record


def _call(draw: Any, number: int) -> dict[str, Any]:
    function = {"name": draw(NAMES), "arguments": draw(ARGUMENTS)}
    return {"id": f"call_{number}", "type": "function", "function": function}


@st.composite
def sharegpt(draw: Any) -> dict[str, Any]:
    names = {
        "system": ["system"],
        "user": ["human", "user"],
        "assistant": ["gpt", "assistant"],
        "tool": ["observation", "tool"],
    }
    turns = [
        {
            "from": draw(st.sampled_from(names[one["role"]])),
            "value": one["content"],
            **{key: value for key, value in one.items() if key not in {"role", "content"}},
        }
        for one in draw(messages())
    ]
    if turns[-1]["from"] in {"human", "user"} and draw(st.booleans()):
        calls = [{"name": draw(NAMES), "arguments": draw(ARGUMENTS)} for _ in range(2)]
        value = json.dumps(calls if draw(st.booleans()) else calls[0], ensure_ascii=False)
        turns.append({"from": "function_call", "value": value})
    record = {**draw(OTHERS), "conversations": turns}
    if turns[0]["from"] != "system" and draw(st.booleans()):
        record["system"] = draw(TEXTS | st.none())
    return record


@st.composite
def alpaca(draw: Any) -> dict[str, Any]:
    record = {**draw(OTHERS), "instruction": draw(TEXTS)}
    optional = {
        "input": TEXTS | st.none(),
        "output": TEXTS | st.none(),
        "system": TEXTS | st.none(),
        "history": st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=2),
    }
    for key, values in optional.items():
        if draw(st.booleans()):
            record[key] = draw(values)
    return record


def to_messages(record, **options):
    return data.chat.ToMessages(**options).forward(copy.deepcopy(record))


def to_sharegpt(record, **options):
    return data.chat.ToShareGPT(**options).forward(copy.deepcopy(record))


def to_alpaca(record):
    return data.chat.ToAlpaca().forward(copy.deepcopy(record))


def to_openai(record):
    return data.chat.ToOpenAI().forward(copy.deepcopy(record))


def to_anthropic(record):
    return data.chat.ToAnthropic().forward(copy.deepcopy(record))


def format_of(record):
    return data.chat.Detect().forward(copy.deepcopy(record))["format"]
