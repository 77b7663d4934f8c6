"""Tests of dagster_dataops.models.replies.usage."""

from typing import Any

import pytest

from dagster_dataops.models.replies.usage import Usage, counted_usage, token_count, usage_of
from tests.each import each

TEXT: dict[str, Any] = {"choices": [{"message": {"content": "Paris is the capital."}}]}


@pytest.mark.parametrize("usage", [None, "x", [], {}, 7])
def test_a_server_may_report_no_tokens(usage: Any):
    assert usage_of({"usage": usage}) is None


@each(
    "case",
    [
        (3, 3),
        (3.0, 3),
        ("3", 3),
        (" 3.0 ", 3),
        (0, 0),
        (1_000_000_000, 1_000_000_000),
        *[(odd, None) for odd in (-1, "-1", float("nan"), float("inf"), "nan", "1e400", 1e18)],
        *[(odd, None) for odd in (10**30, "x", "", "1,234", None, True, [3], {"n": 3}, "9" * 500)],
    ],
)
def test_a_number_of_tokens_is_a_whole_number_in_a_sane_range(case: tuple[Any, int | None]):
    given, wanted = case

    assert token_count(given) == wanted


@each(
    "reported",
    [
        {"usage": {"prompt_tokens": 10, "completion_tokens": 5}},
        {"usage": {"prompt_tokens": 10.0, "completion_tokens": "5"}},
        {"usage": {"prompt_tokens": 10, "total_tokens": 15}},
        {"usage": {"input_tokens": 10, "output_tokens": 5}},
        {"usage": {"inputTokens": 10, "outputTokens": 5}},
        {"usage": {"tokens": {"input_tokens": 10, "output_tokens": 5}}},
        {"usage": {"billed_units": {"input_tokens": 10, "output_tokens": 5}}},
        {"meta": {"billed_units": {"input_tokens": 10, "output_tokens": 5}}},
        {"prompt_eval_count": 10, "eval_count": 5},
        {"usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}},
        {"usage_metadata": {"prompt_token_count": 10, "candidates_token_count": 5}},
        {"timings": {"prompt_n": 10, "predicted_n": 5}},
        {"usage": {}, "timings": {"prompt_n": 10, "predicted_n": 5}},
        {"token_usage": {"prompt_tokens": 10, "completion_tokens": 5}},
    ],
)
def test_other_names_and_forms_of_numbers_are_read(reported: dict[str, Any]):
    assert usage_of(TEXT | reported) == Usage(tokens_in=10, tokens_out=5)
    assert counted_usage(TEXT | reported).estimated is None


def test_cached_tokens_and_those_of_reasoning_are_read_by_the_names_of_each_vendor():
    openai = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    deepseek = {"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "completion_tokens": 5}
    anthropic = {"input_tokens": 4, "cache_read_input_tokens": 4, "output_tokens": 5}
    anthropic["cache_creation_input_tokens"] = 2
    gemini = {"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
    gemini["cachedContentTokenCount"] = 4

    assert usage_of(TEXT | {"usage": openai}) == Usage(10, 4, 5, 2)
    assert usage_of(TEXT | {"usage": deepseek}) == Usage(10, 4, 5, 0)
    assert usage_of(TEXT | {"usage": anthropic}) == Usage(10, 4, 5, 0)
    assert usage_of(TEXT | {"usageMetadata": gemini}) == Usage(10, 4, 5, 2)


def test_more_cached_tokens_than_tokens_are_none():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 11}

    assert usage_of(TEXT | {"usage": usage}) == Usage(10, 0, 5, 0)


@each(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": -10, "completion_tokens": -5},
        {"prompt_tokens": "?", "completion_tokens": None},
        {"total_tokens": 15},
    ],
)
def test_unknown_tokens_are_estimated_from_request_and_text(usage: Any):
    counted = counted_usage(TEXT | {"usage": usage}, 7.0)

    assert counted.usage == Usage(tokens_in=7, tokens_out=6)
    assert counted.estimated == (7, 6)


def test_only_the_unknown_side_is_estimated():
    one = counted_usage(TEXT | {"usage": {"prompt_tokens": 10, "completion_tokens": 0}}, 7.0)
    other = counted_usage(TEXT | {"usage": {"completion_tokens": 5}}, 7.0)

    assert (one.usage, one.estimated) == (Usage(10, 0, 6, 0), (0, 6))
    assert (other.usage, other.estimated) == (Usage(7, 0, 5, 0), (7, 0))


def test_no_tokens_of_a_reply_without_a_text_are_known():
    empty = {"choices": [{"message": {"content": ""}}]}
    usage = {"usage": {"prompt_tokens": 10, "completion_tokens": 0}}

    assert counted_usage(empty | usage).estimated is None


def test_reasoning_and_calls_of_tools_count_in_an_estimate():
    call = {"function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "reasoning_content": "x" * 35, "tool_calls": [call]}

    assert counted_usage({"choices": [{"message": message}]}).usage.tokens_out > 15


def test_an_earlier_estimate_counts():
    counted = counted_usage({"usage": {"prompt_tokens": 10}}, estimated=(0, 4))

    assert counted.usage == Usage(tokens_in=10, tokens_out=4)


def test_vectors_have_tokens_of_the_request_alone():
    vectors = {"data": [{"index": 0, "embedding": [1.0]}]}

    assert usage_of(vectors | {"usage": {"total_tokens": 4}}) == Usage(tokens_in=4)
    assert counted_usage(vectors, 3.0).estimated == (3, 0)
    assert counted_usage(vectors | {"usage": {"prompt_tokens": 4}}, 3.0).estimated is None


def test_a_usage_is_reported_as_it_is_read():
    usage = Usage(10, 4, 5, 2)

    assert usage_of({"usage": usage.reported()}) == usage
