"""Tests of dagster_dataops.models.replies.reply."""

from typing import Any

import pytest

from dagster_dataops.errors import BadReplyError
from dagster_dataops.models.replies.reply import Usage, reply_of, usage_of


def raw(message: Any, finish: str | None = "stop") -> dict[str, Any]:
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
    ],
)
def test_a_reply_without_an_answer_is_bad(found: dict[str, Any]):
    with pytest.raises(BadReplyError):
        reply_of(found, replayed=False)


@pytest.mark.parametrize("usage", [None, "x", []])
def test_a_server_may_report_no_tokens(usage: Any):
    assert usage_of({"usage": usage}) is None


def test_strange_numbers_of_tokens_are_none():
    details = {"prompt_tokens": "3", "completion_tokens": None, "prompt_tokens_details": [1]}

    assert usage_of({"usage": details}) == Usage()
