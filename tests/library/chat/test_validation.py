import pytest
from hypothesis import given

from dagster_dataops import Drop, data
from dagster_dataops.errors import UnfitRecordError
from tests.library.adversarial import NO_TEXTS
from tests.library.chat.conversations import messages, to_messages

USER, ASSISTANT = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "r"}
BLANK = {"type": "text", "text": " "}
SYSTEM, TOOL = {"role": "system", "content": "s"}, {"role": "tool", "content": "t"}


@pytest.mark.parametrize(
    ("given_messages", "reason", "options"),
    [
        ([USER, ASSISTANT], None, {}),
        ([SYSTEM, USER, ASSISTANT, TOOL, TOOL, ASSISTANT, USER, ASSISTANT], None, {}),
        ([], "empty", {}),
        (None, "empty", {}),
        ("text", "malformed", {}),
        ([USER, "text"], "malformed", {}),
        ([USER, {"role": "assistant", "content": None}], "malformed", {}),
        ([{"role": "bot", "content": "a"}], "unknown_role", {}),
        ([USER, USER], "order", {}),
        ([ASSISTANT], "order", {}),
        ([USER, SYSTEM], "order", {}),
        ([USER, {"role": "assistant", "content": " \n"}], "empty_content", {}),
        ([USER], "not_ending_with_assistant", {}),
        ([USER], None, {"end_with_assistant": False}),
        ([SYSTEM], "low_num_turns", {"end_with_assistant": False}),
        ([USER, ASSISTANT] * 2, None, {"max_turns": 2}),
        ([USER, ASSISTANT] * 3, "high_num_turns", {"max_turns": 2}),
        ([USER, ASSISTANT], "high_num_chars", {"max_chars": 1}),
        ([USER, ASSISTANT], None, {"max_chars": 2}),
        ([USER, CALLING, RESULT, ASSISTANT], None, {}),
        ([USER, CALLING], None, {}),
        ([USER, CALLING, USER, ASSISTANT], "unanswered_call", {}),
        ([USER, CALLING | {"tool_calls": [{}]}], "malformed", {}),
        ([USER, CALLING, RESULT | {"tool_call_id": "d"}], "malformed", {}),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}] * 2}, ASSISTANT], None, {}),
        ([{"role": "user", "content": [{"type": "hologram"}]}, ASSISTANT], "malformed", {}),
        (
            [{"role": "user", "content": [{"type": "text", "text": " "}]}, ASSISTANT],
            "empty_content",
            {},
        ),
        ([USER, CALLING | {"content": [BLANK, BLANK]}, RESULT, ASSISTANT], None, {}),
        ([USER, ASSISTANT | {"content": [BLANK, BLANK]}], "empty_content", {}),
        ([{"role": "developer", "content": "d"}, USER, ASSISTANT], None, {}),
        ([USER, {"role": "assistant", "reasoning_content": "r"}], None, {}),
    ],
)
def test_a_conversation_is_judged(given_messages, reason: str | None, options) -> None:
    found = data.chat.Validate(**options).forward({"messages": given_messages})
    assert (found.reason if isinstance(found, Drop) else None) == reason
    tagged = data.chat.Validate(**options, mode="tag").forward({"messages": given_messages})
    assert tagged["drop_reason"] == reason


def test_signals_are_written() -> None:
    found = data.chat.Validate(mode="both").forward(
        {"messages": [USER, ASSISTANT, USER, ASSISTANT]}
    )
    assert found["stats"] == {"num_turns": 2, "num_messages": 4, "num_chars": 4}


@given(messages())
def test_what_can_be_converted_is_in_order(given_messages) -> None:
    operator = data.chat.Validate(mode="tag")
    assert operator.forward({"messages": given_messages})["drop_reason"] not in {
        "order",
        "malformed",
    }
    reordered = [*given_messages[1:], given_messages[0]]
    reason = operator.forward({"messages": reordered})["drop_reason"]
    try:
        to_messages({"messages": reordered})
    except UnfitRecordError:
        assert reason == "order"


def test_nothing_is_an_error() -> None:
    for value in NO_TEXTS:
        for record in ({"messages": value}, {"messages": [value]}, {"messages": [{"role": value}]}):
            assert isinstance(data.chat.Validate().forward(record), Drop)
