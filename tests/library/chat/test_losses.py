"""What each format cannot hold is an error with a path, or left out and counted."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data, pipeline
from dagster_dataops.errors import UnfitRecordError
from tests.each import each

USER = {"role": "user", "content": "a"}
DONE = {"role": "assistant", "content": "b"}
CALL = {"id": "c", "type": "function", "function": {"name": "tide", "arguments": {}}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "2"}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAEC", "format": "wav"}}
TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://x.invalid/a.png", "detail": "low"}}
CACHED = {"type": "text", "text": "a", "cache_control": {}}
DEVELOPER = {"role": "developer", "content": "d"}
BLOCKS = [
    {"type": "thinking", "thinking": "t", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "text", "text": "b", "citations": [{"type": "char_location"}]},
]


class Counting:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, **numbers: int) -> None:
        self.counts.update(numbers)


def run(name: str, conversation: dict[str, Any], **options: Any) -> tuple[Any, Counter[str]]:
    context = Counting()
    operator = getattr(data.chat, name)(**options)
    operator.open(context)
    return operator.forward(dict(conversation)), context.counts


def record(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": list(messages)}


LOSSES = [
    ("ToShareGPT", record(USER, CALLING | {"content": "b"}), "messages[1]", "text_with_calls"),
    ("ToShareGPT", record(USER, DONE | {"reasoning_content": "r"}), "messages[1].reasoning_content",
     "reasoning_content"),
    ("ToShareGPT", record({"role": "user", "content": [TEXT, IMAGE]}, DONE),
     "messages[0].content[1]", "image_url"),
    ("ToShareGPT", record({"role": "user", "content": [TEXT, TEXT]}, DONE), "messages[0].content",
     "borders_of_texts"),
    ("ToShareGPT", record(USER, CALLING, RESULT | {"is_error": True}, DONE),
     "messages[2].is_error", "is_error"),
    ("ToShareGPT", record(DEVELOPER, USER, DONE), "messages[0]", "developer"),
    ("ToAlpaca", record(USER, CALLING, RESULT, DONE), "messages[1].tool_calls", "tool_calls"),
    ("ToAlpaca", record(USER, DONE | {"reasoning_content": "r"}), "messages[1].reasoning_content",
     "reasoning_content"),
    ("ToAlpaca", record({"role": "user", "content": [TEXT, IMAGE]}, DONE), "messages[0].content",
     "parts"),
    ("ToAlpaca", record(USER, DONE | {"weight": 0}), "messages[1].weight", "weight"),
    ("ToAnthropic", record({"role": "user", "content": [TEXT, AUDIO]}, DONE),
     "messages[0].content[1]", "input_audio"),
    ("ToAnthropic", record({"role": "user", "content": [TEXT, IMAGE]}, DONE),
     "messages[0].content[1].image_url.detail", "detail"),
    ("ToAnthropic", record(USER, DONE, {"role": "system", "content": "s"}, USER, DONE),
     "messages[2]", "system_after_the_start"),
    ("ToAnthropic", record(USER, DONE | {"weight": 0}), "messages[1].weight", "weight"),
    ("ToAnthropic", record(USER, DONE, {"role": "tool", "content": "2"}, DONE), "messages[2]",
     "result_without_call"),
    ("ToOpenAI", record({"role": "user", "content": [TEXT, {"type": "video", "path": "a"}]}, DONE),
     "messages[0].content[1]", "video"),
    ("ToMessages", record(USER, {"role": "assistant", "content": BLOCKS}),
     "messages[1].content[1]", "redacted_thinking"),
    ("ToMessages", record(USER, {"role": "assistant", "content": [BLOCKS[0], BLOCKS[2]]}),
     "messages[1].content[1].citations", "citations"),
]  # fmt: skip


@each("case", LOSSES)
def test_a_loss_is_an_error_or_counted(case) -> None:
    name, conversation, path, reason = case
    with pytest.raises(UnfitRecordError, match=re.escape(f"{path}: ")) as raised:
        getattr(data.chat, name)().forward(dict(conversation))
    assert "on_loss='drop'" in str(raised.value)
    converted, counts = run(name, conversation, on_loss="drop")
    assert converted is not None
    assert counts[f"lost/{reason}"] == 1


@each(
    "case",
    [
        ("ToShareGPT", record(USER, CALLING, RESULT, DONE), {"lost/call_id": 1}),
        (
            "ToMessages",
            record(USER, {"role": "assistant", "content": [BLOCKS[0], CACHED]}),
            {"lost/signature": 1, "lost/cache_control": 1},
        ),
        ("ToOpenAI", record(USER, CALLING, RESULT, DONE), {}),
        ("ToAnthropic", record(USER, CALLING, RESULT, DONE), {}),
        ("ToAnthropic", record(USER, CALLING, RESULT | {"name": "tide"}, DONE),
         {"lost/name_of_result": 1}),
    ],
)  # fmt: skip
def test_what_is_of_no_use_elsewhere_is_counted_alone(case) -> None:
    name, conversation, expected = case
    converted, counts = run(name, conversation)
    assert converted is not None
    assert {key: value for key, value in counts.items() if key.startswith("lost/")} == expected


def test_a_turn_behind_a_dropped_result_is_a_turn_of_its_own() -> None:
    turns = record(USER, {"role": "tool", "content": "2"}, USER, RESULT | {"tool_call_id": "d"})
    turns["messages"].insert(3, CALLING | {"tool_calls": [CALL | {"id": "d"}]})
    converted = data.chat.ToAnthropic("drop").forward(turns)["messages"]
    assert [one["content"] for one in converted[:2]] == ["a", "a"]
    assert [one["role"] for one in converted] == ["user", "user", "assistant", "user"]


@pytest.mark.parametrize("name", ["ToShareGPT", "ToAlpaca", "ToAnthropic", "ToOpenAI"])
def test_no_empty_turn_stands_for_what_was_dropped(name: str) -> None:
    seen = record({"role": "user", "content": [{"type": "video", "path": "a"}]}, DONE)
    with pytest.raises(UnfitRecordError, match=r"messages\[0\].content: .* can hold nothing of it"):
        getattr(data.chat, name)("drop").forward(seen)


@each(
    "case",
    [
        ("ToShareGPT", {"content": None, "reasoning_content": "r"}),
        ("ToShareGPT", {"content": "", "reasoning_content": "r"}),
        ("ToShareGPT", {"content": None, "audio": {"id": "a"}}),
        ("ToAnthropic", {"content": None, "audio": {"id": "a"}}),
        ("ToAnthropic", {"content": "", "audio": {"id": "a"}}),
    ],
)
def test_no_empty_turn_stands_for_an_answer_that_was_not_in_the_content(case) -> None:
    name, answer = case
    with pytest.raises(UnfitRecordError, match=r"messages\[1\]: .* can hold nothing of it"):
        getattr(data.chat, name)("drop").forward(record(USER, {"role": "assistant"} | answer))


def test_an_empty_answer_and_an_empty_result_stay() -> None:
    empty = record(
        USER, CALLING, RESULT | {"content": "", "is_error": True}, DONE | {"content": ""}
    )
    for name in ("ToShareGPT", "ToAnthropic"):
        assert getattr(data.chat, name)("drop").forward(empty)


def test_a_prompt_alone_is_no_request() -> None:
    with pytest.raises(UnfitRecordError, match="messages: Anthropic can hold nothing of it"):
        data.chat.ToAnthropic().forward(record({"role": "system", "content": "s"}))


def test_results_in_another_order_than_the_calls_are_refused() -> None:
    calls = [CALL, CALL | {"id": "d"}]
    turned = record(USER, CALLING | {"tool_calls": calls}, RESULT | {"tool_call_id": "d"}, RESULT)
    for on_loss in ("error", "drop"):
        with pytest.raises(UnfitRecordError, match=r"messages\[2\].tool_call_id"):
            data.chat.ToShareGPT(on_loss).forward(turned)


@pytest.mark.parametrize("mode", ["single", "process"])
def test_losses_are_a_table_of_the_result(root: Path, mode: str) -> None:
    with pipeline("losses") as ppl:
        ppl.shared = data.chat.ToShareGPT(_concurrency_mode=mode, _max_workers=2)

    ppl([record(USER, CALLING, RESULT, DONE)] * 3)

    (path,) = root.rglob("shared_results.jsonl.json")
    assert json.loads(path.read_bytes())["counts"] == {"lost/call_id": 3}
