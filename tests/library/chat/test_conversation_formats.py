import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import UnfitRecordError
from tests.library.chat.conversations import (
    OTHERS,
    alpaca,
    called,
    format_of,
    messages,
    sharegpt,
    to_alpaca,
    to_anthropic,
    to_messages,
    to_openai,
    to_sharegpt,
)


@given(record=sharegpt())
def test_sharegpt_to_messages_and_back_is_the_identity(record) -> None:
    split = bool(record.get("system"))
    assert to_sharegpt(to_messages(record), split_system=split) == record


@given(record=called(text_beside=False))
def test_calls_to_sharegpt_and_back_are_the_same(record) -> None:
    assert to_messages(to_sharegpt(record)) == record


@given(record=called())
def test_calls_to_openai_and_back_are_the_same(record) -> None:
    converted = to_openai(record)
    assert to_messages(converted) == record
    assert to_openai(converted) == converted


@given(record=called())
def test_calls_to_anthropic_and_back_are_the_same(record) -> None:
    for tool in record.get("tools", []):  # a schema is required there
        tool["function"].setdefault("parameters", {"type": "object"})
    converted = to_anthropic(record)
    assert to_messages(converted, format="anthropic") == record
    assert to_anthropic(to_messages(converted, format="anthropic")) == converted


@given(record=alpaca())
def test_alpaca_to_messages_and_back_is_the_identity(record) -> None:
    assert to_alpaca(to_messages(record)) == record


@given(given_messages=messages(), others=OTHERS)
def test_messages_to_sharegpt_and_back_is_the_identity(given_messages, others) -> None:
    record = {**others, "messages": given_messages}
    converted = to_sharegpt(record)
    assert "messages" not in converted
    assert to_messages(converted) == record


@given(given_messages=messages(tools=False), others=OTHERS)
def test_messages_to_alpaca_and_back_is_the_identity(given_messages, others) -> None:
    record = {**others, "messages": given_messages}
    restored = to_messages(to_alpaca(record))
    # The system prompt is also a column then, from which the way back is taken.
    assert {key: value for key, value in restored.items() if key != "system"} == record


@given(given_messages=messages(), key=st.sampled_from(["system", "input"]), text=st.text("ab\n"))
def test_other_columns_never_change_a_conversation(given_messages, key: str, text: str) -> None:
    record = {"messages": given_messages, key: text}
    for convert in (to_sharegpt, to_alpaca):
        try:
            converted = convert(record)
        except UnfitRecordError:
            continue
        assert to_messages(converted)["messages"] == to_messages(record)["messages"]


def test_the_formats_look_as_usual() -> None:
    record = {"instruction": "Add.", "input": "1 2", "output": "3", "system": "Be short."}
    turns = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Add.\n\n1 2"},
        {"role": "assistant", "content": "3"},
    ]
    assert to_messages(record)["messages"] == turns
    assert to_sharegpt({"messages": turns}) == {
        "conversations": [
            {"from": "system", "value": "Be short."},
            {"from": "human", "value": "Add.\n\n1 2"},
            {"from": "gpt", "value": "3"},
        ]
    }
    assert to_alpaca({"messages": turns}) == {
        "instruction": "Add.\n\n1 2",
        "output": "3",
        "system": "Be short.",
    }
    assert to_messages({"instruction": "Hi", "input": "", "output": "Ho"})["messages"] == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho"},
    ]


def test_several_turns_become_history() -> None:
    turns = [{"role": role, "content": role[0]} for role in ("user", "assistant") * 2]
    assert to_alpaca({"messages": turns}) == {
        "instruction": "u",
        "output": "a",
        "history": [["u", "a"]],
    }


def test_pairs_of_columns_are_conversations() -> None:
    record = {"question": "q", "answer": "a", "id": 1, "system": "s"}
    assert format_of(record) == "question_answer"
    assert to_messages(record) == {
        "id": 1,
        "system": "s",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
        ],
    }
    assert format_of({"text": "a"}) is None
    assert format_of({"messages": None, "prompt": "p", "completion": "c"}) == "prompt_completion"


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({}, "expected messages"),
        ({"conversations": [{"from": "bot", "value": "a"}]}, "'bot'"),
        ({"conversations": [{"from": "gpt", "value": "a"}]}, "at the start"),
        ({"conversations": [{"from": "human", "value": 1}]}, "it must be a text"),
        ({"conversations": [{"from": "human", "value": "a", "role": "b"}]}, "keys of a message"),
        ({"conversations": ["a"]}, "no dict"),
        ({"messages": [{"role": "user", "content": "a"}] * 2}, "after 'user'"),
        ({"messages": [{"role": "user"}]}, "holds nothing"),
        ({"messages": [{"role": "bot", "content": "a"}]}, "'bot'"),
        ({"instruction": "a", "messages": 1}, "already"),
        ({"instruction": "a", "input": 1}, "it must be a text"),
        ({"instruction": "a", "history": [["a"]]}, "pairs"),
        ({"instruction": "a", "history": "ab"}, "no list"),
        ({"conversations": [{"from": "system", "value": "a"}], "system": "b"}, "after 'system'"),
    ],
)
def test_what_is_no_conversation_is_an_error(record, found: str) -> None:
    with pytest.raises(UnfitRecordError, match=found):
        to_messages(record)


USER = {"role": "user", "content": "a"}
BESIDE = {"messages": [{"role": "system", "content": "a"}, USER], "system": "b"}


@pytest.mark.parametrize(
    ("convert", "record", "found"),
    [
        (to_alpaca, {"messages": []}, "no turn"),
        (to_alpaca, {"messages": [USER | {"name": "b"}]}, "cannot hold name"),
        (to_alpaca, {"messages": [USER], "input": "b"}, "not the end"),
        (to_alpaca, {"messages": [USER | {"content": "\n\nb"}], "input": "b"}, "not the end"),
        (to_alpaca, {"messages": [USER], "output": "b"}, "already"),
        (to_alpaca, BESIDE, "differ"),
        (to_alpaca, {"messages": [{"role": "system", "content": ""}, USER]}, "empty"),
        (to_sharegpt, {"messages": [USER | {"value": "b"}]}, "'value'"),
        (to_sharegpt, {"messages": [USER | {"from": "gpt"}]}, "from='gpt'"),
        (to_sharegpt, {"messages": [USER | {"from": "human"}]}, "from='human'"),
        (to_sharegpt, BESIDE, "differ"),
    ],
)
def test_what_a_format_cannot_hold_is_an_error(convert, record, found: str) -> None:
    with pytest.raises(UnfitRecordError, match=found):
        convert(record)
