"""Read messages of Anthropic, whose contents are lists of blocks.

One turn of the user may hold results of tools and texts, and one turn of the assistant thinking,
texts and calls. In a chat record each result is a message, and thinking is ``reasoning_content``.
"""

from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    BETWEEN_THOUGHTS,
    REASONING,
    SYSTEM,
    TOOL,
    TOOLS,
    Message,
)
from dagster_dataops.datasets.chats.content_parts import Part
from dagster_dataops.datasets.chats.json_fields import dict_entry, list_of_dicts, text_entry
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.datasets.chats.tool_calls import FUNCTION, Call, Tool

BLOCKS: Final = ("tool_use", "tool_result", "thinking", "redacted_thinking")
_ORDER: Final = ("thinking", "text", "tool_use")  # of the blocks of a turn
# Keys of replies that describe the reply; a conversation does not need them.
_OF_REPLIES: Final = (
    "id", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container",
)  # fmt: skip


def is_anthropic(messages: list[Any]) -> bool:
    """Return whether a content has a block that only this form has."""
    blocks = (
        block
        for message in messages
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for block in message["content"]
        if isinstance(block, dict)
    )
    return any(block.get("type") in BLOCKS or "source" in block for block in blocks)


def messages_of(turn: dict[str, Any], place: str, losses: Losses) -> list[Message]:
    """Return the messages of one turn: results first, then the rest.

    Args:
        turn: A dict with ``role`` and ``content``, a text or a list of blocks.
        place: Its path, for errors.
        losses: What a chat record cannot hold.

    Raises:
        UnfitRecordError: The turn is malformed, or cannot be held.
    """
    role, content = text_entry(turn, "role", place), turn.get("content")
    for key in _OF_REPLIES:
        if turn.get(key) is not None:
            losses.note(key)
    losses.lose_others(turn, {"role", "content", "type", *_OF_REPLIES}, place)
    if not isinstance(content, list):
        return [{"role": role, "content": text_entry(turn, "content", place)}]
    blocks = list_of_dicts(f"{place}.content", content)
    read = _assistant if role == ASSISTANT else _user
    return list(read(role, blocks, f"{place}.content", losses))


def _user(role: str, blocks: list[Part], place: str, losses: Losses) -> Iterator[Message]:
    parts: list[Part] = []
    for number, block in enumerate(blocks):
        at = f"{place}[{number}]"
        if block.get("type") == "tool_result":
            if parts:
                losses.lose(at, "block_order")
            yield _result(block, at, losses)
        else:
            parts += _parts(block, at, losses)
    if parts or not blocks:
        yield {"role": role, "content": parts}


def _result(block: Part, place: str, losses: Losses) -> Message:
    _check_keys(block, ("tool_use_id", "content", "is_error"), place, losses)
    content = block.get("content")
    result: Message = {"role": TOOL, "tool_call_id": text_entry(block, "tool_use_id", place)}
    if isinstance(content, list):
        listed = list_of_dicts(f"{place}.content", content)
        parts = (
            part
            for number, entry in enumerate(listed)
            for part in _parts(entry, f"{place}.content[{number}]", losses)
        )
        result["content"] = list(parts) or ""
    else:
        result["content"] = "" if content is None else text_entry(block, "content", place)
    if block.get("is_error") is not None:
        result["is_error"] = block["is_error"]
    return result


def _assistant(role: str, blocks: list[Part], place: str, losses: Losses) -> Iterator[Message]:
    thoughts: list[str] = []
    calls: list[Call] = []
    parts: list[Part] = []
    reached = 0
    for number, block in enumerate(blocks):
        at, kind = f"{place}[{number}]", block.get("type")
        rank = _ORDER.index(kind) if kind in _ORDER else reached
        if rank < reached:
            losses.lose(at, "block_order")
        reached = max(reached, rank)
        if kind == "thinking":
            _check_keys(block, ("thinking", "signature"), at, losses)
            thoughts.append(text_entry(block, "thinking", at))
            if block.get("signature"):
                losses.note("signature")
        elif kind == "tool_use":
            calls.append(_call(block, at, losses))
        else:
            parts += _parts(block, at, losses)
    message: Message = {"role": role, "content": parts or None}
    if any(thoughts):
        message[REASONING] = BETWEEN_THOUGHTS.join(thoughts)
    if calls:
        message["tool_calls"] = calls
    yield message


def _call(block: Part, place: str, losses: Losses) -> Call:
    _check_keys(block, ("id", "name", "input"), place, losses)
    return {
        "id": text_entry(block, "id", place),
        "type": FUNCTION,
        FUNCTION: {
            "name": text_entry(block, "name", place),
            "arguments": dict_entry(block, "input", place),
        },
    }


def _parts(block: Part, place: str, losses: Losses) -> list[Part]:
    """Return a block as a list with its part; the list is empty if there is no such part."""
    kind = text_entry(block, "type", place)
    if kind == "text":
        _check_keys(
            {**block, "citations": block.get("citations") or None}, ("text",), place, losses
        )
        return [{"type": "text", "text": text_entry(block, "text", place)}]
    if kind == "image":
        _check_keys(block, ("source",), place, losses)
        return _image(dict_entry(block, "source", place), f"{place}.source", losses)
    if kind == "document":
        return _document(block, place, losses)
    losses.lose(place, kind)
    return []


def _document(block: Part, place: str, losses: Losses) -> list[Part]:
    citations = block.get("citations")
    unused = isinstance(citations, dict) and not citations.get("enabled")
    shown = {**block, "citations": None} if unused else block
    _check_keys(shown, ("source", "title"), place, losses)
    source = dict_entry(block, "source", place)
    if source.get("type") == "file":
        file = {"file_id": text_entry(source, "file_id", f"{place}.source")}
    elif source.get("type") == "base64":
        file = {"file_data": _data_url(source, f"{place}.source")}
    else:
        losses.lose(f"{place}.source", f"document_of_{source.get('type')}")
        return []
    if block.get("title") is not None:
        file["filename"] = text_entry(block, "title", place)
    return [{"type": "file", "file": file}]


def _data_url(source: dict[str, Any], place: str) -> str:
    media_type, data = (text_entry(source, key, place) for key in ("media_type", "data"))
    return f"data:{media_type};base64,{data}"


def _image(source: dict[str, Any], place: str, losses: Losses) -> list[Part]:
    kind = text_entry(source, "type", place)
    if kind == "base64":
        url = _data_url(source, place)
    elif kind == "url":
        url = text_entry(source, "url", place)
    else:
        losses.lose(place, f"image_of_{kind}")
        return []
    return [{"type": "image_url", "image_url": {"url": url}}]


def _check_keys(block: Part, known: tuple[str, ...], place: str, losses: Losses) -> None:
    """Count marks for the cache, and refuse or count other keys that are not known."""
    if block.get("cache_control") is not None:
        losses.note("cache_control")
    losses.lose_others(block, {"type", "cache_control", *known}, place)


def system_messages(system: object, losses: Losses) -> list[Message]:
    """Return the column ``system``, a text or text blocks, as a message; none if it is empty."""
    if system is None or system in ("", []):
        return []
    if isinstance(system, str):
        return [{"role": SYSTEM, "content": system}]
    blocks = list_of_dicts("system", system)
    parts = [p for i, block in enumerate(blocks) for p in _parts(block, f"system[{i}]", losses)]
    return [{"role": SYSTEM, "content": parts}]


def tools_of(tools: object, losses: Losses) -> list[Tool]:
    """Return tools with ``input_schema`` as tools of a chat record.

    Raises:
        UnfitRecordError: They are malformed, or run on the server.
    """
    written: list[Tool] = []
    for number, tool in enumerate(list_of_dicts(TOOLS, tools)):
        place = f"{TOOLS}[{number}]"
        if FUNCTION in tool:
            written.append(tool)
        elif tool.get("type") not in (None, "custom"):
            losses.lose(place, "server_tool")
        else:
            _check_keys(tool, ("name", "description", "input_schema", "strict"), place, losses)
            function = {"name": text_entry(tool, "name", place)}
            function |= {key: tool[key] for key in ("description", "strict") if key in tool}
            schema = dict_entry(tool, "input_schema", place)
            written.append({"type": FUNCTION, FUNCTION: {**function, "parameters": schema}})
    return written
