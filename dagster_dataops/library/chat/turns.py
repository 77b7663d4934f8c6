"""The group ``chat``, and the messages that a form of texts alone can show."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.datasets.chats.chat_record import MESSAGES, REASONING, TOOLS, Message
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.records import Record

chat: Any = data_register.new_group("chat")

TWO_PROMPTS: Final = "the key 'system' and the system prompt of the messages differ; remove one"


def without(record: Record, keys: Iterable[str]) -> dict[str, Any]:
    """Return a copy of a record without some columns."""
    rest: dict[str, Any] = record.copy()
    for key in keys:
        rest.pop(key, None)
    return rest


def check_texts(messages: Sequence[Message], form: str, remedy: str = "") -> None:
    """Check that messages are texts of roles and nothing more."""
    for position, message in enumerate(messages):
        if fault := _more_than_text(message):
            msg = f"{MESSAGES}[{position}] has {fault}, which {form} cannot show"
            raise UnfitRecordError(f"{msg}; {remedy}" if remedy else msg)


def _more_than_text(message: Message) -> str | None:
    for key in ("tool_calls", REASONING):
        if message.get(key):
            return key
    if isinstance(message["content"], str):
        return None
    if message["content"] is None:
        return "no content"
    kinds = sorted({part["type"] for part in message["content"]})
    return f"a content of parts ({', '.join(kinds)})"


def check_no_tools(record: Mapping[str, Any], form: str, remedy: str) -> None:
    """Check that a record has no schemas of tools."""
    if record.get(TOOLS):
        raise UnfitRecordError(f"the record has {TOOLS}, which {form} cannot show; {remedy}")
