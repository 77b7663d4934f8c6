"""The messages of a conversation, and the rule for the order of their roles."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from dagster_dataops.data import data_register
from dagster_dataops.errors import UnfitRecordError

chat: Any = data_register.new_group("chat")

Message: TypeAlias = dict[str, Any]

SYSTEM, USER, ASSISTANT, TOOL = ROLES = ("system", "user", "assistant", "tool")
# The roles that may follow a role; "" is the start.
_NEXT: Final[dict[str, tuple[str, ...]]] = {
    "": (SYSTEM, USER),
    SYSTEM: (USER,),
    USER: (ASSISTANT,),
    ASSISTANT: (USER, TOOL),
    TOOL: (TOOL, ASSISTANT),
}


def checked_messages(key: str, value: object) -> list[Message]:
    """Return the messages of a conversation, in order.

    Args:
        key: The key of the value, for errors.
        value: A list of dicts with the texts ``role`` and ``content``.

    Raises:
        UnfitRecordError: It is something else, or the roles are unknown or out of order.
    """
    messages = list_of_dicts(key, value)
    for position, message in enumerate(messages):
        place = f"{key}[{position}]"
        role = text_entry(message, "role", place)
        if role not in ROLES:
            raise UnfitRecordError(f"{place} has the role {role!r}; use one of {', '.join(ROLES)}")
        text_entry(message, "content", place)
    if fault := order_fault([message["role"] for message in messages]):
        raise UnfitRecordError(f"{key}{fault}")
    return messages


def order_fault(roles: Sequence[str]) -> str | None:
    """Return where roles are out of order, such as ``[2] is ...``; ``None`` if they are not.

    A conversation may begin with ``system``; ``user`` and ``assistant`` take turns from there on,
    and ``tool`` may stand between two of ``assistant``.
    """
    before = ""
    for position, role in enumerate(roles):
        if role not in _NEXT[before]:
            expected = " or ".join(_NEXT[before])
            after = f"after {before!r}" if before else "at the start"
            return f"[{position}] has the role {role!r} {after}; expected {expected}"
        before = role
    return None


def list_of_dicts(key: str, value: object) -> list[dict[str, Any]]:
    """Return a value that must be a list of dicts.

    Raises:
        UnfitRecordError: It is something else.
    """
    if not isinstance(value, list):
        raise UnfitRecordError(f"{key!r} holds a {type(value).__name__}, no list of messages")
    for position, one in enumerate(value):
        if not isinstance(one, dict):
            raise UnfitRecordError(f"{key}[{position}] is a {type(one).__name__}, no dict")
    return value


def text_entry(turn: dict[str, Any], key: str, place: str) -> str:
    """Return the text in a key of a turn.

    Raises:
        UnfitRecordError: It is missing, or no text.
    """
    value = turn.get(key)
    if not isinstance(value, str):
        found = f"a {type(value).__name__}" if key in turn else "nothing"
        raise UnfitRecordError(f"{place}.{key} holds {found}; it must be a text")
    return value
