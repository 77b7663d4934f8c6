"""``chat.Validate``: keep conversations that are fit for training."""

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from dagster_dataops.library.chat.turns import ROLES, chat, order_fault
from dagster_dataops.library.filters.rules import Filter, Judgement
from dagster_dataops.operators.options.ranges import AtLeastZero
from dagster_dataops.records import Record


class Validate(Filter, chat):
    """Keep conversations that are fit for training.

    Reads ``input_key="messages"``. Reasons, in this order: ``empty`` (no messages), ``malformed``
    (an element without ``role`` and ``content`` as texts), ``unknown_role``, ``order`` (``user``
    and ``assistant`` do not take turns after an optional ``system``, or ``tool`` does not follow
    ``assistant``), ``empty_content`` (white space alone), ``not_ending_with_assistant`` (unless
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
        given: Any = record.get(self._key)
        messages = [
            (one["role"], one["content"])
            for one in (given if isinstance(given, list) else [])
            if isinstance(one, dict)
            and isinstance(one.get("role"), str)
            and isinstance(one.get("content"), str)
        ]
        signals = {
            "num_turns": sum(role == "user" for role, _ in messages),
            "num_messages": len(messages),
            "num_chars": sum(len(content) for _, content in messages),
        }
        reason = _form_fault(given, messages) or self._fault(messages, signals)
        return Judgement(reason, signals)

    def _fault(self, messages: list[tuple[str, str]], signals: dict[str, int]) -> str | None:
        turns = signals["num_turns"]
        faults = {
            "empty_content": not all(content.strip() for _, content in messages),
            "not_ending_with_assistant": self._end_with_assistant
            and messages[-1][0] != "assistant",
            "low_num_turns": turns < self._min_turns,
            "high_num_turns": self._max_turns is not None and turns > self._max_turns,
            "high_num_chars": self._max_chars is not None
            and signals["num_chars"] > self._max_chars,
        }
        return next((reason for reason, found in faults.items() if found), None)


def _form_fault(given: Any, messages: list[tuple[str, str]]) -> str | None:
    if not given:
        return "empty"
    if not isinstance(given, list) or len(messages) < len(given):
        return "malformed"
    roles = [role for role, _ in messages]
    if not set(roles) <= set(ROLES):
        return "unknown_role"
    return "order" if order_fault(roles) else None
