"""``chat.Validate``: keep conversations that are fit for training."""

from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    OLD_RESULT,
    ROLES,
    USER,
    ChatRules,
    Message,
    chat_messages,
    order_fault,
)
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.chat.turns import chat
from dagster_dataops.library.filters.rules import Filter, Judgement
from dagster_dataops.operators.options.ranges import AtLeastZero
from dagster_dataops.records import Record

_FORM: Final = ChatRules(order="any", unanswered="keep")
_ANSWERED: Final = ChatRules(order="any")


class Validate(Filter, chat):
    """Keep conversations that are fit for training.

    Reads ``input_key="messages"``. Reasons, in this order: ``empty`` (no messages), ``malformed``
    (an element breaks a rule of chat records: it has no content, or a part, a call or its
    arguments are no such thing, or a result answers no call), ``unknown_role``, ``order``
    (``user`` and ``assistant`` do not take turns after an optional ``system``, or ``tool`` does
    not follow ``assistant``), ``unanswered_call`` (before a later turn), ``empty_content`` (white
    space alone, without a call), ``not_ending_with_assistant`` (unless
    ``end_with_assistant=False``), ``low_num_turns`` (turns of the user, below ``min_turns=1``),
    ``high_num_turns`` (above ``max_turns=None``), ``high_num_chars`` (characters of all contents,
    above ``max_chars=None``). Nothing in a record is an error. Signals ``num_turns``,
    ``num_messages``, ``num_chars``.

    Args:
        input_key: Column of the messages.
        min_turns: Least turns of the user.
        max_turns: Most turns of the user; ``None`` for no limit.
        max_chars: Most characters of all contents; ``None`` for no limit.
        end_with_assistant: Whether the last turn must be one of the assistant.
    """

    def __init__(
        self,
        *,
        input_key: str = "messages",
        min_turns: AtLeastZero = 1,
        max_turns: AtLeastZero | None = None,
        max_chars: AtLeastZero | None = None,
        end_with_assistant: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._key, self._end_with_assistant = input_key, end_with_assistant
        self._min_turns = min_turns
        self._max_turns, self._max_chars = max_turns, max_chars

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del known, thorough  # counting again costs nothing
        value: Any = record.get(self._key)
        reason, messages = _sound(value)
        signals = {
            "num_turns": sum(message["role"] == USER for message in messages),
            "num_messages": len(messages),
            "num_chars": sum(map(_chars, messages)),
        }
        return Judgement(reason or self._fault(messages, signals), signals)

    def _fault(self, messages: list[Message], signals: dict[str, int]) -> str | None:
        turns = signals["num_turns"]
        faults = {
            "empty_content": any(map(_says_nothing, messages)),
            "not_ending_with_assistant": self._end_with_assistant
            and messages[-1]["role"] != ASSISTANT,
            "low_num_turns": turns < self._min_turns,
            "high_num_turns": self._max_turns is not None and turns > self._max_turns,
            "high_num_chars": self._max_chars is not None
            and signals["num_chars"] > self._max_chars,
        }
        return next((reason for reason, applies in faults.items() if applies), None)


def _sound(value: Any) -> tuple[str | None, list[Message]]:
    """Return the reason to drop malformed messages, and the messages that can be counted."""
    listed = value if isinstance(value, list) else []
    counted = [
        item for item in listed if isinstance(item, dict) and isinstance(item.get("role"), str)
    ]
    if not value or not isinstance(value, list) or len(counted) < len(value):
        return "malformed" if value else "empty", counted
    if not {message["role"] for message in counted} <= {*ROLES, OLD_RESULT}:
        return "unknown_role", counted
    try:
        messages = chat_messages(value, _FORM)
    except UnfitRecordError:
        return "malformed", counted
    return "order" if order_fault(messages) else _unanswered(messages), messages


def _unanswered(messages: list[Message]) -> str | None:
    if not any("tool_calls" in message for message in messages):
        return None
    try:
        chat_messages(messages, _ANSWERED)
    except UnfitRecordError:
        return "unanswered_call"
    return None


def _chars(message: Message) -> int:
    content = message.get("content")
    if isinstance(content, str):
        return len(content)
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return sum(len(text) for text in texts if isinstance(text, str))


def _says_nothing(message: Message) -> bool:
    """Return whether a message has a content of white space alone, and no call."""
    content = message["content"]
    if content is None or message.get("tool_calls"):
        return False
    if isinstance(content, list):
        return all(part["type"] == "text" and not part["text"].strip() for part in content)
    return not content.strip()
