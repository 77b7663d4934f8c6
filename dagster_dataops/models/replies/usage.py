"""`Usage`: the tokens of a call, as the server reports them or as the texts suggest."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dagster_dataops.models.replies.token_estimates import reply_tokens

_MOST: Final = 1_000_000_000  # tokens of a call; a larger number is none
_LONGEST: Final = 20  # characters of a number
_HOLDERS: Final = ("usage", "usageMetadata", "usage_metadata", "token_usage", "meta", "timings")
_INNER: Final = ("tokens", "billed_units", "usage")
_TOKENS_IN: Final = (
    "prompt_tokens",
    "promptTokens",
    "promptTokenCount",
    "prompt_token_count",
    "prompt_eval_count",
    "inputTokens",
    "inputTokenCount",
    "input_token_count",
    "prompt_n",
)
_TOKENS_IN_UNCACHED: Final = "input_tokens"  # of Anthropic; without those of its caches
_TOKENS_OUT: Final = (
    "completion_tokens",
    "output_tokens",
    "completionTokens",
    "outputTokens",
    "outputTokenCount",
    "output_token_count",
    "generated_tokens",
    "eval_count",
    "predicted_n",
)
_TOKENS_OUT_SHOWN: Final = ("candidatesTokenCount", "candidates_token_count")  # without thoughts
_THOUGHTS: Final = ("thoughtsTokenCount", "thoughts_token_count")
_CACHES: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")
_TOTAL: Final = ("total_tokens", "totalTokens", "totalTokenCount", "total_token_count")
_CACHED: Final = (
    "cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_read_input_tokens",
    "cachedContentTokenCount",
    "cached_content_token_count",
)
_REASONING: Final = ("reasoning_tokens", *_THOUGHTS)
_DETAILS_IN: Final = ("prompt_tokens_details", "input_tokens_details")
_DETAILS_OUT: Final = ("completion_tokens_details", "output_tokens_details")


class Usage(NamedTuple):
    """The tokens of a call.

    Attributes:
        tokens_in: Tokens of the request.
        tokens_cached: Those of them that the server had cached.
        tokens_out: Tokens of the reply.
        tokens_reasoning: Those of them that are not shown.
    """

    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    tokens_reasoning: int = 0

    def reported(self) -> dict[str, Any]:
        """Return the usage as servers report it."""
        return {
            "prompt_tokens": self.tokens_in,
            "completion_tokens": self.tokens_out,
            "prompt_tokens_details": {"cached_tokens": self.tokens_cached},
            "completion_tokens_details": {"reasoning_tokens": self.tokens_reasoning},
        }


class CountedUsage(NamedTuple):
    """The tokens of a call.

    Attributes:
        usage: All tokens.
        estimated: The estimated tokens of request and reply; ``None`` if the server reports both.
    """

    usage: Usage
    estimated: tuple[int, int] | None


def usage_of(raw: Mapping[str, Any]) -> Usage | None:
    """Return the tokens that a server reports; ``None`` if it reports none.

    A number is a whole number from 0 to a billion, also as a float or as text. Of a reply with a
    text, 0 tokens count as not reported.
    """
    told_in, told_out = _told(raw)
    if not told_in and not told_out:
        return None
    counts = _counts(raw)
    tokens_in, tokens_out = told_in or 0, told_out or 0
    cached = _first([*_details(counts, _DETAILS_IN), counts], _CACHED) or 0
    reasoning = _first([*_details(counts, _DETAILS_OUT), counts], _REASONING) or 0
    return Usage(
        tokens_in=tokens_in,
        tokens_cached=cached if cached <= tokens_in else 0,
        tokens_out=tokens_out,
        tokens_reasoning=reasoning if reasoning <= tokens_out else 0,
    )


def counted_usage(
    raw: Mapping[str, Any],
    request_tokens: float = 0.0,
    estimated: tuple[int, int] | None = None,
) -> CountedUsage:
    """Return the tokens of a call; those that the server does not report are estimated.

    ``request_tokens`` is the estimate for the request. ``estimated``, an earlier estimate for
    request and reply, is used instead of a new one.
    """
    usage = usage_of(raw) or Usage()
    if estimated is None:
        told_in, told_out = _told(raw)
        if told_in and told_out is not None:
            return CountedUsage(usage, None)
        more_in = 0 if told_in else round(request_tokens)
        estimated = (more_in, reply_tokens(raw) if told_out is None else 0)
    more_in, more_out = estimated
    return CountedUsage(
        usage._replace(tokens_in=usage.tokens_in + more_in, tokens_out=usage.tokens_out + more_out),
        estimated,
    )


def _told(raw: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the tokens of the request and of the reply; ``None`` for those not reported."""
    counts = _counts(raw)
    tokens_in, tokens_out = counts.get("prompt_tokens"), counts.get("completion_tokens")
    if type(tokens_in) is type(tokens_out) is int and 0 < tokens_in <= _MOST >= tokens_out > 0:
        return tokens_in, tokens_out  # the usual form, which is read often
    total = _first([counts], _TOTAL)
    tokens_in, tokens_out = _tokens_in(counts), _tokens_out(counts)
    if "choices" not in raw and "data" in raw:  # vectors
        return tokens_in or total, 0
    if tokens_in and tokens_out is None and total is not None and total > tokens_in:
        tokens_out = total - tokens_in
    if tokens_out == 0 and reply_tokens(raw):
        tokens_out = None
    return tokens_in or None, tokens_out


def _tokens_in(counts: Mapping[str, Any]) -> int | None:
    tokens = _first([counts], _TOKENS_IN)
    if tokens is not None:
        return tokens
    fresh = token_count(counts.get(_TOKENS_IN_UNCACHED))
    if fresh is None:
        return None
    return fresh + sum(token_count(counts.get(name)) or 0 for name in _CACHES)


def _tokens_out(counts: Mapping[str, Any]) -> int | None:
    tokens = _first([counts], _TOKENS_OUT)
    if tokens is not None:
        return tokens
    shown = _first([counts], _TOKENS_OUT_SHOWN)
    return None if shown is None else shown + (_first([counts], _THOUGHTS) or 0)


def _counts(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object of a reply that has the numbers of tokens; empty if none has."""
    usage = raw.get("usage")
    if type(usage) is dict and type(usage.get("prompt_tokens")) is int:
        return usage
    holders = [raw.get(name) for name in _HOLDERS]
    objects = [holder for holder in holders if isinstance(holder, dict)]
    objects += [
        outer[name] for outer in objects for name in _INNER if isinstance(outer.get(name), dict)
    ]
    for counts in (*objects, raw):
        if _tokens_in(counts) is not None or _tokens_out(counts) is not None:
            return counts
    totals: list[Mapping[str, Any]] = [
        holder for holder in objects if _first([holder], _TOTAL) is not None
    ]
    return totals[0] if totals else {}


def _details(counts: Mapping[str, Any], names: Iterable[str]) -> list[Mapping[str, Any]]:
    return [counts[name] for name in names if isinstance(counts.get(name), dict)]


def _first(holders: Iterable[Mapping[str, Any]], names: Sequence[str]) -> int | None:
    """Return the first number that any of the objects has under any of the names."""
    for counts in holders:
        for name in names:
            value = counts.get(name)
            if value is not None and (count := token_count(value)) is not None:
                return count
    return None


def token_count(value: object) -> int | None:
    """Return a number of tokens; ``None`` for what is none."""
    if isinstance(value, str) and len(value) <= _LONGEST:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return round(value) if 0 <= value <= _MOST else None
