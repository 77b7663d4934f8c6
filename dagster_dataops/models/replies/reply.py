"""`Reply`: the answer of a model to one request, and the rule for what counts as an answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dagster_dataops.errors import (
    BadReplyError,
    EmptyReplyError,
    InvalidOutputError,
    UnaskedToolCallError,
    UnfinishedReplyError,
)
from dagster_dataops.models.replies.message_parts import Message, is_blank, message_of
from dagster_dataops.models.replies.usage import Usage, usage_of

# The reasons, in lower case, for which an answer is complete. Every other one is a failure.
_FINISHED: Final = frozenset(
    {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", ""}
)
_AFTER_TOOLS: Final = frozenset({"tool_calls", "function_call", "tool_use"})
_CUT: Final = "length"
_FILTERED: Final = "content_filter"
_MAX_TEXT: Final = 500

# The sums that calls of models count, apart from tables.
CALL_COUNTS: Final = frozenset(
    {"calls", "calls_repeated", "calls_replayed", "calls_without_usage", "cost", "cost_estimated"}
    | {"rate_limited_seconds", "tokens_estimated", *Usage._fields}
)


@dataclass(kw_only=True)
class Reply:
    """The answer of a model to one request.

    Attributes:
        text: The text; empty if the reply has none.
        parsed: The text as the ``response_format`` asked for: an instance of the pydantic model, or
            the JSON value. ``None`` without a format.
        finish_reason: Why the model stopped, in the words of the server: ``stop``, ``length``,
            ``content_filter``. ``stop`` if it does not say.
        refusal: What the model says when it refuses to answer; else ``None``.
        model: The model, as the server names it.
        replayed: Whether it was taken from the stored replies.
        raw: The JSON of the server.
        reasoning: What the model thought before; empty if the server does not show it.
        tool_calls: Calls of tools, in OpenAI's form; only if the request offers tools.
    """

    text: str
    parsed: Any = None
    finish_reason: str
    refusal: str | None
    model: str
    replayed: bool
    raw: dict[str, Any]
    reasoning: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)

    @property
    def usage(self) -> Usage | None:
        """The tokens of the call; ``None`` if the server does not tell."""
        return usage_of(self.raw)

    @property
    def cut(self) -> bool:
        """Whether it ended at the limit of its length."""
        return self.finish_reason.lower() == _CUT

    @property
    def filtered(self) -> bool:
        """Whether a filter of the server stopped it."""
        return self.finish_reason.lower() == _FILTERED

    @property
    def message(self) -> dict[str, Any]:
        """The message of the model, as a further message of a request takes it."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        return {**message, "tool_calls": self.tool_calls} if self.tool_calls else message


def reply_of(
    raw: dict[str, Any], *, replayed: bool, offers_tools: bool = False, empty: bool = False
) -> Reply:
    """Return the reply in the JSON of a server. All its choices must be answers.

    With ``offers_tools``, calls of tools are an answer; with ``empty``, so is a reply without a
    text.

    Raises:
        BadReplyError: There is no answer in it.
        EmptyReplyError: It has no text.
        UnfinishedReplyError: It ended before the answer was complete, or has an error.
        UnaskedToolCallError: It calls a tool, and the request offers none.
        InvalidOutputError: It has parts that are no text.
    """
    choices = _choices(raw)
    messages = [message_of(choice) for choice in choices]
    for choice, message in zip(choices, messages, strict=True):
        _check_finished(choice, message, offers_tools=offers_tools)
    first = messages[0]
    reply = Reply(
        text=first.text,
        finish_reason=finish_of(choices[0]) or "stop",
        refusal=first.refusal or None,
        model=str(raw.get("model") or ""),
        replayed=replayed,
        raw=raw,
        reasoning=first.reasoning,
        tool_calls=first.tool_calls,
    )
    if not empty:
        check_text(reply)
    return reply


def check_text(reply: Reply) -> None:
    """Raise an `EmptyReplyError` for a complete reply that says nothing."""
    if reply.tool_calls or reply.refusal or reply.filtered or not is_blank(reply.text):
        return
    shown = f"; it shows reasoning: {reply.reasoning[:_MAX_TEXT]}" if reply.reasoning else ""
    reason = (
        f"the reply has no text (finish_reason {reply.finish_reason}, content "
        f"{_content(reply.raw)!r:.80}){shown}; set empty='keep' to use it as an answer"
    )
    raise EmptyReplyError(reason)


def offers_tools(request: Mapping[str, Any]) -> bool:
    """Return whether a request offers tools to the model."""
    return bool(request.get("tools") or request.get("functions"))


def finish_of(choice: Mapping[str, Any]) -> str:
    """Return why a choice ended, in the words of the server; empty if it does not say."""
    reason = choice.get("finish_reason")
    return "" if reason is None else str(reason).strip()


def finish_reason_of(raw: dict[str, Any]) -> str:
    """Return why the model stopped; empty for a reply without choices, such as vectors."""
    choices = raw.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return (finish_of(first) or "stop") if isinstance(first, dict) else ""


def text_of(raw: Mapping[str, Any]) -> str:
    """Return the text of a reply; empty for one without text, such as vectors."""
    try:
        return message_of(_choices(raw)[0]).text
    except (BadReplyError, InvalidOutputError, UnfinishedReplyError):
        return ""


def _choices(raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the choices in the order of their index; raise an error without any."""
    _check_error(raw, "the reply")
    choices = raw.get("choices")
    if (
        not isinstance(choices, list)
        or not choices
        or not all(isinstance(choice, dict) for choice in choices)
    ):
        keys = ", ".join(map(str, list(raw)[:10])) or "none"
        reason = f"the reply has no choices with a message; its keys: {keys}"
        raise BadReplyError(reason)
    if all(type(choice.get("index")) is int for choice in choices):
        return sorted(choices, key=lambda entry: int(entry["index"]))
    return choices


def _check_finished(choice: Mapping[str, Any], message: Message, *, offers_tools: bool) -> None:
    """Raise an error if a choice is no complete answer."""
    _check_error(choice, "a choice of the reply")
    finish = finish_of(choice)
    if message.tool_calls and not offers_tools:
        names = [str((call.get("function") or {}).get("name")) for call in message.tool_calls]
        reason = f"the reply calls {', '.join(names)}, but the request offers no tools"
        raise UnaskedToolCallError(reason)
    known = _FINISHED | {_CUT, _FILTERED} | (_AFTER_TOOLS if offers_tools else frozenset())
    if finish.lower() in known:
        return
    said = message.text or message.refusal
    shown = f"; it says so far: {said[:_MAX_TEXT]}" if said else ""
    raise UnfinishedReplyError(f"the reply is not finished: finish_reason is {finish!r}{shown}")


def _check_error(holder: Mapping[str, Any], what: str) -> None:
    """Raise an `UnfinishedReplyError` if an object of a reply has an error."""
    error = holder.get("error")
    if error:
        said = error.get("message") if isinstance(error, dict) else error
        raise UnfinishedReplyError(f"{what} has an error: {str(said or error)[:_MAX_TEXT]}")


def _content(raw: Mapping[str, Any]) -> object:
    choice = _choices(raw)[0]
    message = choice.get("message")
    return message.get("content") if isinstance(message, dict) else choice.get("text")
