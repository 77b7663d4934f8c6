"""Make chat records of what the lines of a session say."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    REASONING,
    TOOL,
    ChatRules,
    chat_messages,
)
from dagster_dataops.datasets.chats.content_parts import plain_text
from dagster_dataops.datasets.chats.json_fields import json_text_value, text_entry
from dagster_dataops.datasets.chats.tool_calls import FUNCTION, Call
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.records import Record

Line: TypeAlias = dict[str, Any]

_RULES: Final = ChatRules(order="any", unanswered="keep")


@dataclass
class Session:
    """The messages of one session while they are collected, and facts about it.

    Attributes:
        messages: The messages; results stand anywhere behind their call.
        facts: Facts about the session, which become ``metadata`` of the record; none is null.
        left_out: How many things are not in the messages, by reason.
        tools: The schemas of tools, if the file has them.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    tools: list[dict[str, Any]] | None = None

    def tell(self, **facts: object) -> None:
        """Note facts that are not known yet."""
        for name, fact in facts.items():
            if fact is not None:
                self.facts.setdefault(name, fact)

    def text_of(self, content: object) -> str:
        """Return a content that is a text; others but null are empty, and counted as left out."""
        if isinstance(content, str):
            return content
        self.left_out["content"] += content is not None
        return ""

    def records(self, *, reasoning: bool) -> Iterator[Record]:
        """Yield the record of the session; none if it has no messages.

        Args:
            reasoning: Whether messages keep their reasoning.

        Raises:
            UnfitRecordError: The messages are malformed.
        """
        if not reasoning:
            for message in self.messages:
                if message.pop(REASONING, None) is not None:
                    self.left_out["reasoning"] += 1
        self._check()
        placed = list(self._with_results_behind_calls())
        spoken = [message for message in placed if _says_something(message)]
        if len(spoken) < len(placed):
            self.left_out["empty_turn"] += len(placed) - len(spoken)
        if not spoken:
            return
        record: dict[str, Any] = {"messages": self._joined(chat_messages(spoken, _RULES))}
        if self.tools is not None:
            record["tools"] = self.tools
        self.left_out = +self.left_out  # without zeros
        if self.left_out:
            self.facts["left_out"] = dict(sorted(self.left_out.items()))
        yield {**record, "metadata": self.facts}

    def _check(self) -> None:
        for number, message in enumerate(self.messages):
            place = f"messages[{number}]"
            if text_entry(message, "role", place) == TOOL:
                text_entry(message, "tool_call_id", place)
            for position, call in enumerate(message.get("tool_calls", [])):
                at = f"{place}.tool_calls[{position}]"
                text_entry(call, "id", at)
                text_entry(call[FUNCTION], "name", f"{at}.{FUNCTION}")

    def _joined(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages; several texts of one and nothing else are one text."""
        return [
            {**message, "content": self._one_text(message["role"], message["content"])}
            if isinstance(message["content"], list)
            else message
            for message in messages
        ]

    def _one_text(self, role: str, parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        if plain_text(parts) is None:
            return parts
        self.left_out["borders_of_texts"] += len(parts) - 1
        border = "\n\n" if role == ASSISTANT else "\n"
        return border.join(part["text"] for part in parts)

    def _with_results_behind_calls(self) -> Iterator[dict[str, Any]]:
        """Yield the messages, each call's result behind its message, with the name of the call."""
        answers = [message for message in self.messages if message["role"] == TOOL]
        results = {answer["tool_call_id"]: answer for answer in answers}  # the last one counts
        self.left_out["result_again"] += len(answers) - len(results)
        known: set[str] = set()
        for message in self.messages:
            if message["role"] == TOOL:
                continue
            calls = [call for call in message.get("tool_calls", []) if call["id"] not in known]
            if len(calls) < len(message.get("tool_calls", [])):
                self.left_out["call_again"] += len(message["tool_calls"]) - len(calls)
                message["tool_calls"] = calls
            yield message
            for call in calls:
                known.add(call["id"])
                if (result := results.pop(call["id"], None)) is not None:
                    yield {**result, "name": call[FUNCTION]["name"]}
        self.left_out["result_without_call"] += len(results)


def _says_something(message: Mapping[str, Any]) -> bool:
    return bool(
        message.get("content")
        or message["role"] == TOOL
        or (message["role"] == ASSISTANT and (message.get("tool_calls") or message.get(REASONING)))
    )


def block_type(block: object) -> Any:
    """Return the type of a block of a content; ``None`` if it is no block."""
    return block.get("type") if isinstance(block, dict) else None


def call_of(name: object, identity: object, arguments: object) -> Call:
    """Return a call; arguments that are no object, nor the text of one, are its ``input``.

    `Session.records` refuses a name or an id that is no text.
    """
    if isinstance(arguments, str):
        try:
            value = json_text_value(arguments, "arguments") if arguments.strip() else {}
        except UnfitRecordError:
            value = arguments
        arguments = value if isinstance(value, dict) else {"input": arguments}
    elif arguments is None:
        arguments = {}
    elif not isinstance(arguments, dict):
        arguments = {"input": arguments}
    return {"id": identity, "type": FUNCTION, FUNCTION: {"name": name, "arguments": arguments}}


def branch(lines: list[Line], key: str, parent_keys: tuple[str, ...]) -> set[str] | None:
    """Return the ids of the lines on the branch of the last line; ``None`` if no line has an id.

    Sessions are trees: to go back in a session begins a new branch. A line whose parent is not in
    the file follows the line before it.

    Args:
        lines: The lines of a session.
        key: The key of the id of a line.
        parent_keys: The keys of the id of the parent. The first that is not null counts.
    """
    named = {line[key]: line for line in lines if isinstance(line.get(key), str)}
    if not named:
        return None
    before = dict(zip([*named][1:], named, strict=False))
    names: set[str] = set()
    name: Any = next(reversed(named))
    while isinstance(name, str) and name not in names:
        names.add(name)
        line = named[name]
        parent = next((line[key] for key in parent_keys if line.get(key) is not None), None)
        name = parent if parent is None or str(parent) in named else before.get(name)
    return names
