"""``chat.Secrets``: mask keys and tokens in whole conversations."""

import re
from collections.abc import Callable
from itertools import repeat
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import MESSAGES, TOOLS
from dagster_dataops.datasets.chats.json_fields import json_list, list_of_dicts
from dagster_dataops.library.analysis.text_spans import replaced
from dagster_dataops.library.chat.turns import chat
from dagster_dataops.library.pii.secret_keys import secret_spans
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record

# Keys whose texts name something, so that another text would break a link.
_NAMES: Final = frozenset({"role", "type", "id", "tool_call_id", "name"})
# Keys of the objects that have them, besides messages and tools themselves.
_WITH_NAMES: Final = frozenset({"content", "tool_calls", "function", "function_call"})
_BYTES: Final = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,[\w+/=]*+\Z")


class Secrets(chat):
    """Mask keys and tokens of well-known forms in all texts of a conversation.

    Reads and writes ``messages``, ``tools`` and ``documents``: contents, parts, reasoning, results,
    and all texts in the arguments of calls and in schemas, also keys of objects there. Names,
    roles, types and ids of calls stay, and the bytes of images. The forms are those of
    ``pii.Secrets``. Arguments that are JSON text are masked as text. ``metadata`` of
    `read_agent_traces` is masked, too. How many were found is counted as ``secrets``.

    Args:
        replacement: The text that replaces a secret.
    """

    _context: OperatorContext | None = None

    def __init__(self, replacement: str = "<SECRET>", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._replacement = replacement

    def open(self, context: OperatorContext) -> None:
        self._context = context

    def forward(self, record: Record) -> Record:
        count = 0

        def masked(text: str) -> str:
            nonlocal count
            spans = list(secret_spans(text))
            count += len(spans)
            return replaced(text, iter(spans), repeat(self._replacement)) if spans else text

        messages = json_list(record.get(MESSAGES), MESSAGES)
        record[MESSAGES] = _mapped(list_of_dicts(MESSAGES, messages), masked, names=True)
        for key in (TOOLS, "documents", "metadata"):
            if key in record:
                record[key] = _mapped(record[key], masked, names=key == TOOLS)
        if count and self._context is not None:
            self._context.count(secrets=count)
        return record


def _mapped(value: Any, masked: Callable[[str], str], *, names: bool) -> Any:
    """Return a value with all texts in it mapped.

    Args:
        value: A JSON value.
        masked: The mapping.
        names: Whether the texts of `_NAMES` stay: in a message, a part, a call or a tool they are
            names, in every other object they can be anything.
    """
    if isinstance(value, str):
        return value if _BYTES.match(value) else masked(value)
    if isinstance(value, list):
        return [_mapped(item, masked, names=names) for item in value]
    if not isinstance(value, dict):
        return value
    mapped: dict[str, Any] = {}
    for key, item in value.items():
        if names and key in _NAMES and isinstance(item, str):
            mapped[key] = item
        else:
            written = masked(key)
            while written in mapped:  # two keys that are secrets
                written += "_"
            mapped[written] = _mapped(item, masked, names=names and key in _WITH_NAMES)
    return mapped
