"""Tests of dagster_dataops.models.replies.reply and message_parts."""

import math
import random
from contextlib import suppress
from typing import Any

import pytest

from dagster_dataops.errors import (
    BadReplyError,
    EmptyReplyError,
    ModelError,
    UnaskedToolCallError,
    UnfinishedReplyError,
)
from dagster_dataops.models.calls.status_errors import error_in
from dagster_dataops.models.replies.message_parts import is_blank, without_thinking
from dagster_dataops.models.replies.reply import reply_of, text_of
from dagster_dataops.models.replies.usage import Usage, counted_usage
from tests.each import each

CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


def raw(message: Any, finish: Any = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], "model": "m"}


def test_the_text_of_a_reply():
    reply = reply_of(raw({"content": "x"}, None) | {"usage": {"prompt_tokens": 3}}, replayed=True)

    assert (reply.text, reply.finish_reason, reply.model) == ("x", "stop", "m")
    assert reply.replayed
    assert reply.usage == Usage(tokens_in=3)


def test_a_refusal_and_a_filtered_reply_have_no_text():
    assert reply_of(raw({"content": None, "refusal": "no"}), replayed=False).refusal == "no"
    assert reply_of(raw({"content": None}, "content_filter"), replayed=False).text == ""


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"choices": []},
        {"choices": "x"},
        {"choices": [1]},
        {"choices": [{}]},
        raw("text"),
        raw({"content": None}),
        raw({"content": 7}),
        raw({"content": [7]}),
        {"message": {"content": "of Ollama"}, "done": True},
        {"content": [{"type": "text", "text": "of Anthropic"}], "stop_reason": "end_turn"},
        {"candidates": [{"content": {"parts": [{"text": "of Gemini"}]}, "finishReason": "STOP"}]},
        {
            "output": [
                {"type": "message", "content": [{"type": "output_text", "text": "of Responses"}]}
            ]
        },
    ],
)
def test_a_reply_without_an_answer_is_bad(found: dict[str, Any]):
    with pytest.raises(BadReplyError):
        reply_of(found, replayed=False)


def test_a_reply_of_another_interface_is_named_by_its_keys():
    with pytest.raises(BadReplyError, match="its keys: message, done"):
        reply_of({"message": {"content": "x"}, "done": True}, replayed=False)


@each(
    "finish",
    [
        *("stop", "STOP", "Stop", None, "", " stop ", "eos", "eos_token", "end_turn", "END_TURN"),
        *("stop_sequence", "STOP_SEQUENCE", "COMPLETE", "length", "LENGTH", "content_filter"),
    ],
)
def test_a_reply_with_a_known_end_is_read(finish: Any):
    assert reply_of(raw({"content": "x"}, finish), replayed=False).text == "x"


@each(
    "finish",
    [
        *("error", "abort", "insufficient_system_resource", "network_error", "MAX_TOKENS"),
        *("max_tokens", "SAFETY", "RECITATION", "OTHER", "tool_calls", "function_call"),
        *("tool_use", "repetition", "sensitive", "model_length", "cancelled", "timeout"),
        *("unknown", "stopped", "unload", "load", "model_context_window_exceeded", "pause_turn"),
        *("refusal", "ERROR_TOXIC", 0, 1, False, {"type": "stop"}, ["stop"], "停止"),
    ],
)
def test_a_reply_that_ended_for_another_reason_is_no_answer(finish: Any):
    so_far = r"finish_reason is .*; it says so far: The answer is"
    with pytest.raises(UnfinishedReplyError, match=so_far) as caught:
        reply_of(raw({"content": "The answer is"}, finish), replayed=False)
    assert repr(finish) in str(caught.value)


@each(
    "place",
    [
        {"choices": [{"message": {"content": "x"}, "error": {"message": "lost", "code": 502}}]},
        {"choices": [{"message": {"content": "x"}, "error": "lost", "finish_reason": "stop"}]},
        {**raw({"content": "x"}), "error": {"message": "lost"}},
    ],
)
def test_a_reply_with_an_error_is_no_answer(place: dict[str, Any]):
    with pytest.raises(UnfinishedReplyError, match="lost"):
        reply_of(place, replayed=False)


@each(
    "text", ["", None, " \n", "\u200b", "\ufeff \t", "\u3000", [], [{"type": "text", "text": " "}]]
)
def test_a_reply_without_a_text_is_empty(text: Any):
    with pytest.raises(EmptyReplyError, match="empty='keep'"):
        reply_of(raw({"content": text}), replayed=False)
    assert is_blank(reply_of(raw({"content": text}), replayed=False, empty=True).text)


def test_the_error_of_an_empty_reply_has_what_the_server_sent():
    with pytest.raises(EmptyReplyError, match="content ''.*reasoning: The answer is 4"):
        reply_of(raw({"content": "", "reasoning_content": "The answer is 4."}), replayed=False)


@each(
    "content",
    [
        "Paris",
        ["Pa", "ris"],
        [{"type": "text", "text": "Pa"}, {"type": "text", "text": "ris"}],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "Paris"}],
        [{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "Paris"}],
        {"type": "text", "text": "Paris"},
    ],
)
def test_the_texts_of_parts_are_joined(content: Any):
    assert reply_of(raw({"content": content}), replayed=False).text == "Paris"


@each(
    "message",
    [
        {"content": "Paris", "reasoning_content": "hm"},
        {"content": "Paris", "reasoning": "hm"},
        {"content": "Paris", "reasoning": "hm", "reasoning_content": "hm"},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Paris"}]},
        {"content": "Paris", "reasoning": {"text": "hm"}},
    ],
)
def test_reasoning_is_kept_apart(message: dict[str, Any]):
    reply = reply_of(raw(message), replayed=False)

    assert (reply.text, reply.reasoning) == ("Paris", "hm")


def test_a_part_may_be_a_refusal():
    parts = [{"type": "refusal", "refusal": "no"}]

    assert reply_of(raw({"content": parts}), replayed=False).refusal == "no"


@each(
    "message",
    [
        {"content": None, "tool_calls": [CALL]},
        {"content": "", "tool_calls": [CALL]},
        {"content": "I look.", "tool_calls": [CALL]},
        {"content": None, "function_call": {"name": "weather", "arguments": "{}"}},
    ],
)
def test_calls_of_tools_are_an_answer_only_if_tools_are_offered(message: dict[str, Any]):
    for finish in ("tool_calls", "stop", "function_call", None):
        reply = reply_of(raw(message, finish), replayed=False, offers_tools=True)
        assert reply.tool_calls[0]["function"]["name"] == "weather"
        assert reply.message["tool_calls"] == reply.tool_calls
        with pytest.raises(UnaskedToolCallError, match="calls weather"):
            reply_of(raw(message, finish), replayed=False)


def test_a_reply_that_promises_calls_and_has_none_is_empty():
    for calls in (None, []):
        with pytest.raises(EmptyReplyError):
            reply_of(
                raw({"content": None, "tool_calls": calls}, "tool_calls"),
                replayed=False,
                offers_tools=True,
            )


def test_every_choice_is_judged_and_the_first_by_its_index_is_the_answer():
    one = {"index": 1, "message": {"content": "second"}, "finish_reason": "stop"}
    other = {"index": 0, "message": {"content": "first"}, "finish_reason": "stop"}

    assert reply_of({"choices": [one, other]}, replayed=False).text == "first"
    for bad in (one, other):
        faulty = [
            bad | {"finish_reason": "error"} if bad is each_one else each_one
            for each_one in (one, other)
        ]
        with pytest.raises(UnfinishedReplyError):
            reply_of({"choices": faulty}, replayed=False)


def test_a_completion_has_a_text_without_a_message():
    assert (
        reply_of({"choices": [{"text": "x", "finish_reason": "stop"}]}, replayed=False).text == "x"
    )
    with pytest.raises(UnfinishedReplyError):
        reply_of({"choices": [{"text": "x", "finish_reason": "abort"}]}, replayed=False)


@each(
    "case",
    [
        ("<think>a</think>\n\nb", "b", "a"),
        ("a</think>b", "b", "a"),
        ("<think>a</think><think>c</think>b", "b", "a<think>c"),
        ("<think>never ends", "", "never ends"),
        ("<Thinking>a</Thinking> b", "b", "a"),
        ("[THINK]a[/THINK]b", "b", "a"),
        ("<seed:think>a</seed:think>b", "b", "a"),
        ("<|channel|>analysis<|message|>a<|channel|>final <|constrain|>json<|message|>b", "b", "a"),
        ("◁think▷a◁/think▷b", "b", "a"),
        ("<|channel|>analysis<|message|>a<|channel|>final<|message|>b", "b", "a"),
        ("no thinking", "no thinking", ""),
        ("a <think> in prose", "a <think> in prose", ""),
    ],
)
def test_thinking_is_cut_up_to_its_last_end(case: tuple[str, str, str]):
    text, rest, thought = case

    assert without_thinking(text) == (rest, thought)


def test_the_text_of_any_reply_can_be_asked_for():
    assert text_of(raw({"content": [{"type": "text", "text": "x"}]}, "abort")) == "x"
    assert text_of({"data": []}) == text_of({"error": "x"}) == text_of(raw("x")) == ""


ODD = [None, True, 0, -1, "429", 1.5, math.nan, 10**25, "", "x", "error", [], {}, [{}], {"a": 1}]


def changed(value: Any, chance: random.Random) -> Any:
    """Return a JSON value with some parts replaced, left out or added."""
    if chance.random() < 0.1:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = {name: changed(one, chance) for name, one in value.items() if chance.random() < 0.9}
        names = ("error", "content", "text", "tool_calls", "type", "reasoning", "refusal", "usage")
        return {**kept, chance.choice(names): chance.choice(ODD)} if chance.random() < 0.3 else kept
    return [changed(one, chance) for one in value] if isinstance(value, list) else value


def test_any_json_is_an_answer_or_a_named_error():
    chance = random.Random(3)
    parts = [{"type": "text", "text": "x"}, {"type": "thinking", "thinking": [{"text": "y"}]}]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"n": 1}}
    whole = raw({"content": parts, "tool_calls": [CALL], "refusal": None}) | {"usage": usage}
    for _ in range(3000):
        found = changed(changed(whole, chance), chance)
        if not isinstance(found, dict):
            continue
        tokens = counted_usage(found, 3.0).usage
        assert all(0 <= one <= 2_000_000_000 for one in tokens)
        assert isinstance(text_of(found), str)
        error = error_in(found, {})
        assert error is None or isinstance(error, ModelError)
        with suppress(ModelError):
            assert isinstance(reply_of(found, replayed=False, offers_tools=True).text, str)


@each("error", [UnfinishedReplyError("a"), EmptyReplyError("b"), UnaskedToolCallError("c")])
def test_the_errors_are_errors_of_models(error: ModelError):
    assert isinstance(error, ModelError)
