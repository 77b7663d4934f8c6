import copy
import json
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, UnfitRecordError
from tests.each import each
from tests.execution.helpers import run_over
from tests.library.adversarial import HOSTILE, SCRIPTS

USER = {"role": "user", "content": "a"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}
AS_TEXT = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
USED = {"type": "tool_use", "id": "c", "name": "f", "input": {}}

ALPACA = {"instruction": "a", "output": "b", "id": 1}
SHAREGPT = {
    "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
    "id": 1,
}
MESSAGES = {
    "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    "id": 1,
}


def test_each_format_becomes_each_other() -> None:
    records = [ALPACA, SHAREGPT, MESSAGES]
    assert data.chat.ToMessages()(records) == [MESSAGES] * 3
    assert data.chat.ToShareGPT()(records) == [SHAREGPT] * 3
    assert data.chat.ToAlpaca()(records) == [ALPACA] * 3


def test_the_format_is_detected() -> None:
    found = data.chat.Detect()([ALPACA, SHAREGPT, MESSAGES, {"prompt": "a", "response": "b"}, {}])
    names = [record["format"] for record in found]
    assert names == ["alpaca", "sharegpt", "messages", "prompt_response", None]


@each(
    "case",
    [
        ({"messages": [USER, CALLING]}, "messages"),
        ({"messages": [USER, {**CALLING, "tool_calls": [AS_TEXT]}]}, "openai"),
        ({"messages": [USER, {"role": "assistant", "function_call": {"name": "f"}}]}, "openai"),
        ({"messages": [USER, {"role": "assistant", "content": [USED]}]}, "anthropic"),
        ({"messages": [USER], "system": "s"}, "anthropic"),
        ({"messages": [USER, CALLING], "system": "s"}, "messages"),
        ({"messages": [USER], "system": {"cpu": 1}}, "messages"),
        ({"messages": [{"role": "system", "content": "s"}, USER], "system": "s"}, "messages"),
        ({"messages": [USER], "tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
        ({"messages": [USER], "tools": '[{"name": "f", "input_schema": {}}]'}, "anthropic"),
        ({"messages": [USER], "tools": '[{"name": "f"}]'}, "messages"),
        ({"messages": [USER], "tools": '[{"input_schema"'}, "messages"),
        ({"messages": json.dumps([USER])}, "messages"),
        ({"messages": "Hello"}, None),
        ({"messages": "[", "question": "a", "answer": "b"}, "messages"),
        ({"type": "user", "message": {"role": "user", "content": "a"}, "uuid": "b"}, "agent_trace"),
        ({"type": "response_item", "payload": {}}, "agent_trace"),
        ({"type": {}, "message": {"role": []}}, None),
    ],
)
def test_formats_with_tools_are_told_apart(case) -> None:
    record, expected = case
    assert data.chat.Detect().forward(dict(record))["format"] == expected


def test_a_line_of_a_session_is_read_by_its_reader() -> None:
    line = {"type": "user", "message": {"role": "user", "content": "a"}}
    with pytest.raises(UnfitRecordError, match="read_agent_traces"):
        data.chat.ToMessages().forward(line)


@each(
    "calling",
    [CALLING, {**CALLING, "tool_calls": [AS_TEXT]}, {"role": "assistant", "content": "b"}],
)
def test_a_prompt_beside_messages_is_their_first(calling) -> None:
    for prompt in ("s", [{"type": "text", "text": "s"}]):
        record = {"messages": [USER, calling], "system": prompt, "id": 1}
        converted = data.chat.ToMessages().forward(dict(record))
        assert converted["messages"][0] == {"role": "system", "content": "s"}
        assert converted.keys() == {"messages", "id"}
        assert data.chat.ToMessages("messages").forward(dict(record))["system"] == prompt
    unrelated = {"messages": [USER, calling], "system": {"cpu": 1}}
    assert data.chat.ToMessages().forward(dict(unrelated))["system"] == {"cpu": 1}


def test_turns_can_be_renamed_alone() -> None:
    turns = [{"from": "bot", "value": ["a"], "more": 1}]
    renamed = [{"role": "bot", "content": ["a"], "more": 1}]
    rename = data.chat.ToMessages("from_value").forward
    assert rename({"conversations": turns, "id": 1}) == {"messages": renamed, "id": 1}
    assert rename({"chosen": turns, "rejected": renamed}) == {
        "chosen": renamed,
        "rejected": renamed,
    }
    for record, expected in (
        ({"prompt": "a"}, "no list of turns"),
        ({"prompt": [{"from": "a", "role": "b"}]}, r"prompt\[0\] has both"),
        ({"prompt": [{"value": "b"}]}, r"prompt\[0\].role holds nothing"),
    ):
        with pytest.raises(UnfitRecordError, match=expected):
            rename(record)


def test_a_call_of_sharegpt_is_json() -> None:
    for value, expected in (
        ("tide()", r"conversations\[1\].value is no JSON"),
        ("[]", "empty list of calls"),
        ("[1]", "holds a number as a call"),
        ('{"name": "f", "args": {}}', r"keys \['args'\]"),
        ('{"arguments": {}}', r"conversations\[1\].value.name holds nothing"),
        ('{"name": "f", "arguments": "["}', "function.arguments is no JSON"),
    ):
        turns = [{"from": "human", "value": "a"}, {"from": "function_call", "value": value}]
        with pytest.raises(UnfitRecordError, match=expected):
            data.chat.ToMessages().forward({"conversations": turns})


def test_results_and_texts_of_a_user_of_anthropic_are_one_turn() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}
    file = {
        "type": "file",
        "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a"},
    }
    record = {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [image, file]},
            {**CALLING, "reasoning_content": "r"},
            {"role": "tool", "tool_call_id": "c", "content": "1", "is_error": True},
            {"role": "user", "content": "more"},
        ],
        "tools": [tool],
        "id": 1,
    }

    converted = data.chat.ToAnthropic().forward(dict(record))

    source = {"type": "base64", "media_type": "image/png", "data": "AAEC"}
    document = {"type": "base64", "media_type": "application/pdf", "data": "AA"}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "1", "is_error": True}
    assert converted == {
        "id": 1,
        "system": "s",
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": source},
                    {"type": "document", "source": document, "title": "a"},
                ],
            },
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "r"}, USED]},
            {"role": "user", "content": [result, {"type": "text", "text": "more"}]},
        ],
    }
    assert data.chat.ToMessages().forward(dict(converted)) == record
    as_texts = {key: json.dumps(converted[key]) for key in ("messages", "tools")}
    assert data.chat.ToMessages().forward(converted | as_texts) == record
    assert data.chat.ToAnthropic().forward(dict(converted)) == converted


def test_a_format_may_be_demanded() -> None:
    assert data.chat.ToMessages("alpaca")([ALPACA, SHAREGPT]) == [MESSAGES]
    with pytest.raises(DefinitionError, match="sharegpt"):
        data.chat.ToMessages("chatml")


def test_no_record_depends_on_another() -> None:
    operator = data.chat.ToMessages()
    first = operator.forward({**ALPACA, "system": "s"})
    assert first["messages"][0]["role"] == "system"
    assert operator.forward(dict(ALPACA)) == MESSAGES


@pytest.mark.parametrize("name", ["ToMessages", "ToShareGPT", "ToAlpaca"])
def test_hostile_texts_stay_as_they_are(name: str) -> None:
    for text in (*HOSTILE.values(), *SCRIPTS):
        record = {"instruction": text, "input": text, "output": text}
        converted = getattr(data.chat, name)().forward(dict(record))
        assert data.chat.ToAlpaca().forward(converted) == record


OPENAI = {
    "messages": [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {**CALLING, "tool_calls": [AS_TEXT], "weight": 0},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "n"}], "name": "x"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "strict": True}}],
    "parallel_tool_calls": False,
}
PICTURE = {"type": "image", "source": {"type": "url", "url": "https://x.invalid/a.png"}}
ANTHROPIC = {
    "model": "m",
    "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    "tools": [
        {"name": "f", "description": "d", "strict": True, "input_schema": {"type": "object"}}
    ],
    "messages": [
        {"role": "user", "content": [PICTURE, {"type": "text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}, USED]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [PICTURE, {"type": "text", "text": "1"}],
                    "is_error": False,
                },
                {"type": "document", "source": {"type": "file", "file_id": "f"}},
            ],
        },
        {"role": "assistant", "content": "c"},
    ],
}


@each("case", [("ToOpenAI", OPENAI), ("ToAnthropic", ANTHROPIC)])
def test_a_request_comes_back_as_it_was(case) -> None:
    name, request = case
    messages = data.chat.ToMessages().forward(copy.deepcopy(request))
    converted = getattr(data.chat, name)().forward(copy.deepcopy(messages))
    assert converted == request


def test_results_of_parallel_calls_may_be_one_turn(tmp_path) -> None:
    def calls(count: int) -> dict[str, Any]:
        listed = [{"name": f"f{number}", "arguments": {}} for number in range(count)]
        return {"from": "function_call", "value": json.dumps(listed)}

    def result(text: str, **more: Any) -> dict[str, Any]:
        return {"from": "observation", "value": text, **more}

    turns = [
        {"from": "human", "value": "a"},
        calls(2), result("1"), result("2"), {"from": "gpt", "value": "b"},
        {"from": "human", "value": "c"}, calls(1), result("3"), {"from": "gpt", "value": "c"},
    ]  # fmt: skip
    operator = data.chat.ToShareGPT(separator="\n")
    report = run_over(tmp_path, operator, [{"conversations": turns}])

    (written,) = report.dataset
    texts = [one["value"] for one in written["conversations"] if one["from"] == "observation"]
    assert texts == ["1\n2", "3"]
    assert [one["from"] for one in written["conversations"][:5]] == [
        "human", "function_call", "observation", "gpt", "human",
    ]  # fmt: skip
    assert report.manifest.counts == {"lost/borders_of_results": 1}
    kept = data.chat.ToShareGPT().forward({"conversations": turns})["conversations"]
    assert [one["value"] for one in kept if one["from"] == "observation"] == ["1", "2", "3"]
    turns[2] = result("1", name="f0")
    with pytest.raises(UnfitRecordError, match="cannot hold name"):
        operator.forward({"conversations": turns})
