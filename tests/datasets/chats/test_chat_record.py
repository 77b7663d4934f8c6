import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import UnfitRecordError
from tests.each import each
from tests.library.chat.conversations import called

USER = {"role": "user", "content": "a"}
DONE = {"role": "assistant", "content": "b"}


def call(name="tide", arguments=None, **more):
    return {**more, "function": {"name": name, "arguments": {} if arguments is None else arguments}}


def calling(*calls, **more):
    return {"role": "assistant", "tool_calls": list(calls), **more}


def result(**more):
    return {"role": "tool", "content": "1", **more}


def chat_record(record, **options):
    return data.chat.ToMessages("messages", **options).forward(copy.deepcopy(record))


def normal(*messages, **options):
    return chat_record({"messages": list(messages)}, **options)["messages"]


@given(called())
def test_a_normal_form_stays_as_it_is(record) -> None:
    assert chat_record(record) == record
    as_text = chat_record(record, arguments="text")
    assert chat_record(as_text) == record
    assert chat_record(as_text, arguments="text") == as_text
    assert chat_record(record, arguments="keep") == record


@each(
    "case",
    [
        ({"content": None}, "messages[1].content holds nothing"),
        ({"content": []}, "messages[1].content holds no parts"),
        ({"content": 1}, "messages[1].content holds a number"),
        ({"content": ["a"]}, "messages[1].content[0] is a str"),
        ({"content": [{"type": "hologram"}]}, "messages[1].content[0].type is 'hologram'"),
        ({"content": [{"type": "text"}]}, "messages[1].content[0].text holds nothing"),
        (
            {"content": [{"type": "image_url", "image_url": "u"}]},
            "content[0].image_url holds a text",
        ),
        (
            {"content": [{"type": "input_audio", "input_audio": {"data": "a"}}]},
            "content[0].input_audio.format holds nothing",
        ),
        ({"content": "b", "weight": 0.5}, "messages[1].weight is 0.5"),
        ({"content": "b", "weight": True}, "messages[1].weight is True"),
        ({"content": "b", "reasoning_content": 1}, "messages[1].reasoning_content holds a number"),
        ({"content": "b", "tool_call_id": "c"}, "messages[1].tool_call_id is of no use"),
        ({"tool_calls": "c"}, "messages[1].tool_calls"),
        ({"tool_calls": [{"type": "custom"}]}, "tool_calls[0].type is 'custom'"),
        ({"tool_calls": [{}]}, "messages[1].tool_calls[0].function holds nothing"),
        ({"tool_calls": [call(1)]}, "tool_calls[0].function.name holds a number"),
        ({"tool_calls": [call(arguments=[])]}, "function.arguments holds a list"),
        ({"tool_calls": [call(arguments="{")]}, "function.arguments is no JSON"),
        ({"tool_calls": [call(arguments="[1]")]}, "arguments holds the JSON text of a list"),
        ({"tool_calls": [call(arguments='"{}"')]}, "arguments holds the JSON text of a text"),
        ({"tool_calls": [call(arguments='{"a":1,"a":2}')]}, "has the key 'a' twice"),
        ({"tool_calls": [call(arguments='{"a":18446744073709551616}')]}, "integer beyond 64 bits"),
        ({"tool_calls": [call(arguments='{"a":-9223372036854775809}')]}, "integer beyond 64 bits"),
        ({"tool_calls": [call(arguments='{"a":1e999}')]}, "a number beyond"),
        ({"tool_calls": [call(arguments='{"a":NaN}')]}, "holds NaN"),
        ({"tool_calls": [call(arguments='{"a":"\\ud800"}')]}, "lone surrogate"),
        ({"tool_calls": [call(arguments='{"a":' + "[" * 100_000)]}, "function.arguments"),
        ({"tool_calls": [call(id="c"), call(id="c")]}, "tool_calls[1].id is 'c'"),
        ({"tool_calls": [call()], "function_call": {"name": "a"}}, "both tool_calls and"),
        ({"role": "bot", "content": "b"}, "the role 'bot'"),
        ({"role": 1, "content": "b"}, "messages[1].role holds a number"),
        ({"role": "tool", "content": "b", "weight": 1}, "messages[1].weight is of no use"),
    ],
)
def test_each_broken_rule_names_its_path(case) -> None:
    message, expected = case
    with pytest.raises(UnfitRecordError) as raised:
        normal(USER, {"role": "assistant", **message})
    assert expected in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_numbers_of_64_bits_and_all_scripts_stay_exact() -> None:
    text = '{"a": 18446744073709551615, "b": -9223372036854775808, "c": 1.0, "d": "天気 👍"}'
    (_, message) = normal(USER, calling(call(arguments=text)))
    assert json.dumps(message["tool_calls"][0]["function"]["arguments"], ensure_ascii=False) == text
    (_, back) = normal(USER, message, arguments="text")
    assert back["tool_calls"][0]["function"]["arguments"] == text


def test_calls_without_arguments_have_none() -> None:
    found = normal(USER, calling(call(arguments=""), {"function": {"name": "bell"}}))
    assert [one["function"]["arguments"] for one in found[1]["tool_calls"]] == [{}, {}]


def test_calls_get_ids_and_results_the_first_that_is_open() -> None:
    found = normal(
        USER,
        calling(call("tide"), call("bell", id="call_1")),
        result(name="tide"),
        result(),
        calling(call("tide")),
        result(),
        DONE,
    )
    ids = [[one["id"] for one in each.get("tool_calls", [])] for each in found]
    assert ids == [[], ["call_2", "call_1"], [], [], ["call_3"], [], []]
    assert [one["tool_call_id"] for one in found if one["role"] == "tool"] == [
        "call_2",
        "call_1",
        "call_3",
    ]


def test_results_may_come_in_any_order() -> None:
    calls = [call(id="a"), call(id="b")]
    messages = [USER, calling(*calls), result(tool_call_id="b"), result(tool_call_id="a"), DONE]
    assert [one.get("tool_call_id") for one in normal(*messages)] == [None, None, "b", "a", None]


@each(
    "case",
    [
        ([USER, result(tool_call_id="c")], "messages[1] has the role 'tool' after 'user'"),
        ([USER, DONE, result(tool_call_id="c")], "messages[2] answers the call 'c'"),
        ([USER, calling(call(id="a")), result(tool_call_id="c")], "without an answer: a"),
        ([USER, calling(call(id="a")), result(), result()], "messages[3] has no tool_call_id"),
        ([USER, calling(call()), result(name="bell")], "messages[2].name is 'bell'"),
        ([USER, calling(call()), USER], "messages[1].tool_calls[0] calls 'tide'"),
        ([USER, calling(call(), call()), result(), DONE], "messages[1].tool_calls[1]"),
        ([USER, USER], "messages[1] has the role 'user' after 'user'"),
        ([DONE], "messages[0] has the role 'assistant' at the start"),
        ([], "no turns"),
    ],
)
def test_turns_and_results_must_fit(case) -> None:
    messages, expected = case
    with pytest.raises(UnfitRecordError) as raised:
        normal(*messages)
    assert expected in str(raised.value)


def test_rules_can_be_loosened() -> None:
    assert len(normal(DONE, USER, USER, DONE, DONE, order="any")) == 5
    open_call = [USER, calling(call()), DONE]
    assert len(normal(*open_call, unanswered="keep")) == 3
    assert normal(USER, calling(call()))[1]["content"] is None  # at the end none is needed
    developer = {"role": "developer", "content": "d"}
    assert normal({"role": "system", "content": "s"}, developer, USER)[1] == developer


def test_results_of_calls_in_the_text_have_no_link() -> None:
    said = {"role": "assistant", "content": "<tool_call>tide</tool_call>"}
    assert normal(USER, said, result(), result(), DONE)[2] == result()


def test_old_calls_are_calls() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    found = normal(USER, old, {"role": "function", "name": "f", "content": "1"}, DONE)
    assert found[1] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": {}}}
        ],
    }
    assert found[2] == {"role": "tool", "name": "f", "content": "1", "tool_call_id": "call_1"}


def test_nulls_refusals_and_reasoning_have_one_form() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "refusal": "no",
        "audio": None,
        "tool_calls": [],
        "thinking": "hm",
        "reasoning": "hm",
        "annotations": [],
    }
    assert normal(USER, message)[1] == {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "no"}],
        "reasoning_content": "hm",
        "annotations": [],
    }


def test_one_text_part_is_a_text() -> None:
    parts = [{"type": "text", "text": "a"}]
    assert normal({"role": "user", "content": parts})[0] == USER
    assert normal({"role": "user", "content": parts}, flatten_text=False)[0]["content"] == parts
    marked = [{"type": "text", "text": "a", "cache": 1}]
    assert normal({"role": "user", "content": marked})[0]["content"] == marked
    assert normal({"role": "user", "content": parts * 2})[0]["content"] == parts * 2


def test_columns_of_json_text_are_read() -> None:
    record = {"messages": json.dumps([USER]), "tools": '[{"name": "f"}]', "id": 1}
    tool = {"type": "function", "function": {"name": "f"}}
    assert chat_record(record) == {"messages": [USER], "tools": [tool], "id": 1}
    assert chat_record({**record, "tools": " "}) == {"messages": [USER], "id": 1}
    assert chat_record({**record, "tools": "[]"})["tools"] == []
    for value, expected in (("{", "tools is no JSON"), ("1", "'tools' holds"), ([1], "tools[0]")):
        with pytest.raises(UnfitRecordError, match=expected.replace("[", r"\[")):
            chat_record({**record, "tools": value})
    with pytest.raises(UnfitRecordError, match="messages is no JSON"):
        chat_record({"messages": "Hello"})


def test_nulls_of_arrow_are_left_out_and_data_stays() -> None:
    schema = {
        "type": "object",
        "description": None,
        "enum": None,
        "properties": {
            "a": {"type": "string", "default": None, "enum": ["x", None], "items": None},
            "b": None,
            "default": {"const": None, "anyOf": [{"type": "null", "title": None}]},
        },
    }
    tool = {"type": "function", "function": {"name": "f", "strict": None, "parameters": schema}}
    asked = calling(call("f", {"a": {"x": None, "y": [None, {"z": None}]}, "b": None}))
    record = {"messages": [USER, asked], "tools": [tool]}

    kept = chat_record(record)
    cleaned = chat_record(record, nulls="arrow")

    assert kept["tools"][0]["function"]["parameters"] == schema
    assert kept["messages"][1]["tool_calls"][0]["function"]["arguments"]["b"] is None
    assert cleaned["tools"][0]["function"] == {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "default": None, "enum": ["x", None]},
                "default": {"const": None, "anyOf": [{"type": "null"}]},
            },
        },
    }
    arguments = cleaned["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert arguments == {"a": {"y": [None, {}]}}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_what_is_no_conversation_is_an_error_of_the_record(value) -> None:
    for record in ({"messages": value}, {"messages": [value]}, {"messages": [{"role": value}]}):
        with pytest.raises(UnfitRecordError):
            chat_record(record)
