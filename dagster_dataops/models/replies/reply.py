"""`Reply`: the answer of a model to one request."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dagster_dataops.errors import BadReplyError


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


# The sums that calls of models count, apart from tables.
CALL_COUNTS: Final = frozenset(
    {
        *Usage._fields,
        "calls",
        "calls_repeated",
        "calls_replayed",
        "calls_without_usage",
        "cost",
        "rate_limited_seconds",
    }
)


@dataclass(kw_only=True)
class Reply:
    """The answer of a model to one request.

    Attributes:
        text: The text; empty if the reply has none.
        parsed: The text as the ``response_format`` asked for: an instance of the pydantic model, or
            the JSON value. ``None`` without a format.
        finish_reason: Why the model stopped: ``stop``, ``length``, ``content_filter``.
        refusal: What the model says when it refuses to answer; else ``None``.
        model: The model, as the server names it.
        replayed: Whether it was taken from the stored replies.
        raw: The JSON of the server.
    """

    text: str
    parsed: Any = None
    finish_reason: str
    refusal: str | None
    model: str
    replayed: bool
    raw: dict[str, Any]

    @property
    def usage(self) -> Usage | None:
        """The tokens of the call; ``None`` if the server does not tell."""
        return usage_of(self.raw)


def reply_of(raw: dict[str, Any], *, replayed: bool) -> Reply:
    """Return the reply in the JSON of a server.

    Raises:
        BadReplyError: There is no answer in it.
    """
    choice = _first_choice(raw)
    message = choice["message"]
    content = message.get("content")
    refusal = message.get("refusal")
    finish = str(choice.get("finish_reason") or "stop")
    if not isinstance(content, str) and not refusal and finish == "stop":
        reason = "the reply has no text"
        raise BadReplyError(reason)
    return Reply(
        text=content if isinstance(content, str) else "",
        finish_reason=finish,
        refusal=refusal,
        model=str(raw.get("model") or ""),
        replayed=replayed,
        raw=raw,
    )


def _first_choice(raw: dict[str, Any]) -> dict[str, Any]:
    choices = raw.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        choice: dict[str, Any] = choices[0]
        if isinstance(choice.get("message"), dict):
            return choice
    reason = "the reply has no choices with a message"
    raise BadReplyError(reason)


def finish_reason_of(raw: dict[str, Any]) -> str:
    """Return why the model stopped; empty for a reply without choices, such as vectors."""
    choices = raw.get("choices")
    return str(choices[0].get("finish_reason") or "stop") if choices else ""


def usage_of(raw: dict[str, Any]) -> Usage | None:
    """Return the tokens that a server reports; ``None`` if it reports none."""
    usage = raw.get("usage")
    if not isinstance(usage, dict):
        return None
    return Usage(
        tokens_in=_number(usage, "prompt_tokens"),
        tokens_cached=_number(usage.get("prompt_tokens_details"), "cached_tokens"),
        tokens_out=_number(usage, "completion_tokens"),
        tokens_reasoning=_number(usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _number(counts: Any, name: str) -> int:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int else 0
