"""Messages in the form of Anthropic, whose contents are lists of blocks.

One turn of the user may hold results of tools and texts, and one turn of the assistant thinking,
texts and calls. In a chat record each result is a message, and thinking is ``reasoning_content``.
"""

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, Final

from dagster_dataops.chats.chat_record import (
    ASSISTANT,
    DEVELOPER,
    REASONING,
    SYSTEM,
    TOOL,
    TOOLS,
    USER,
    Message,
)
from dagster_dataops.chats.content_parts import Part
from dagster_dataops.chats.json_fields import dict_entry, list_of_dicts, text_entry
from dagster_dataops.chats.losses import Losses
from dagster_dataops.chats.tool_calls import FUNCTION, Call, Tool
from dagster_dataops.errors import UnfitRecordError

BLOCKS: Final = ("tool_use", "tool_result", "thinking", "redacted_thinking")
_THOUGHTS: Final = "\n\n"  # between several thinking blocks of one turn
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
_ORDER: Final = ("thinking", "text", "tool_use")  # of the blocks of a turn
# What a reply says about itself.
_OF_REPLIES: Final = (
    "id", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container",
)  # fmt: skip
_NO_SCHEMA: Final = {"type": "object"}  # of a tool without parameters; a schema is required


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
    made: Message = {"role": TOOL, "tool_call_id": text_entry(block, "tool_use_id", place)}
    if isinstance(content, list):
        listed = list_of_dicts(f"{place}.content", content)
        parts = (
            part
            for number, one in enumerate(listed)
            for part in _parts(one, f"{place}.content[{number}]", losses)
        )
        made["content"] = list(parts) or ""
    else:
        made["content"] = "" if content is None else text_entry(block, "content", place)
    if block.get("is_error") is not None:
        made["is_error"] = block["is_error"]
    return made


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
    made: Message = {"role": role, "content": parts or None}
    if any(thoughts):
        made[REASONING] = _THOUGHTS.join(thoughts)
    if calls:
        made["tool_calls"] = calls
    yield made


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
    """Return the part of a block; nothing if there is none for it."""
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
    """Return the message of the column ``system``: a text, or a list of text blocks."""
    if system is None or system in ("", []):
        return []
    if isinstance(system, str):
        return [{"role": SYSTEM, "content": system}]
    blocks = list_of_dicts("system", system)
    parts = [p for i, one in enumerate(blocks) for p in _parts(one, f"system[{i}]", losses)]
    return [{"role": SYSTEM, "content": parts}]


def tools_of(tools: object, losses: Losses) -> list[Tool]:
    """Return tools with ``input_schema`` as tools of a chat record.

    Raises:
        UnfitRecordError: They are malformed, or run on the server.
    """
    made: list[Tool] = []
    for number, tool in enumerate(list_of_dicts(TOOLS, tools)):
        place = f"{TOOLS}[{number}]"
        if FUNCTION in tool:
            made.append(tool)
        elif tool.get("type") not in (None, "custom"):
            losses.lose(place, "server_tool")
        else:
            _check_keys(tool, ("name", "description", "input_schema", "strict"), place, losses)
            function = {"name": text_entry(tool, "name", place)}
            function |= {key: tool[key] for key in ("description", "strict") if key in tool}
            schema = dict_entry(tool, "input_schema", place)
            made.append({"type": FUNCTION, FUNCTION: {**function, "parameters": schema}})
    return made


def turns_of(messages: list[Message], losses: Losses, first: int = 0) -> list[dict[str, Any]]:
    """Return the turns of messages in normal form; those of the system must be gone.

    Results in a row, and a message of the user after them, are one turn.

    Args:
        messages: The messages.
        losses: What blocks cannot hold.
        first: The number of the first message in its record, for errors.

    Raises:
        UnfitRecordError: Blocks cannot hold something.
    """
    turns: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        place = f"messages[{number + first}]"
        turn = _WRITERS[message["role"]](message, place, losses)
        if turn is None:
            continue
        after_result = bool(turns) and number > 0 and messages[number - 1]["role"] == TOOL
        if after_result and turn["role"] == turns[-1]["role"] == USER:
            turns[-1]["content"] += _as_blocks(turn["content"])
        else:
            turns.append(turn)
    losses.check_rest(turns, messages, "messages")
    return turns


def _as_blocks(content: str | list[Part]) -> list[Part]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _user_turn(message: Message, place: str, losses: Losses) -> dict[str, Any]:
    losses.lose_others(message, {"role", "content"}, place)
    return {"role": USER, "content": _blocks(message["content"], place, losses)}


def _assistant_turn(message: Message, place: str, losses: Losses) -> dict[str, Any]:
    losses.lose_others(message, {"role", "content", "tool_calls", REASONING}, place)
    content = _blocks(message["content"], place, losses)
    thoughts = (
        [{"type": "thinking", "thinking": message[REASONING]}] if REASONING in message else []
    )
    calls = [_tool_use(call) for call in message.get("tool_calls", [])]
    if not thoughts and not calls:
        return {"role": ASSISTANT, "content": content}
    texts = _as_blocks(content) if content else []
    return {"role": ASSISTANT, "content": [*thoughts, *texts, *calls]}


def _tool_use(call: Call) -> Part:
    function = call[FUNCTION]
    return {
        "type": "tool_use",
        "id": call["id"],
        "name": function["name"],
        "input": function["arguments"],
    }


def _tool_turn(message: Message, place: str, losses: Losses) -> dict[str, Any] | None:
    if "tool_call_id" not in message:
        losses.lose(place, "result_without_call")
        return None
    if "name" in message:
        losses.note("name_of_result")  # the call has it
    known = {"role", "content", "tool_call_id", "name", "is_error"}
    losses.lose_others(message, known, place)
    block = {
        "type": "tool_result",
        "tool_use_id": message["tool_call_id"],
        "content": _blocks(message["content"], place, losses),
    }
    if "is_error" in message:
        block["is_error"] = message["is_error"]
    return {"role": USER, "content": [block]}


def _late_system(message: Message, place: str, losses: Losses) -> None:
    losses.lose(place, f"{message['role']}_after_the_start")


_WRITERS: Final[dict[str, Callable[[Message, str, Losses], dict[str, Any] | None]]] = {
    USER: _user_turn,
    ASSISTANT: _assistant_turn,
    TOOL: _tool_turn,
    SYSTEM: _late_system,
    DEVELOPER: _late_system,
}


def _blocks(content: str | list[Part] | None, place: str, losses: Losses) -> Any:
    """Return a content as text or blocks; null is no block."""
    if not isinstance(content, list):
        return content or ""
    found = (_block(part, f"{place}.content[{i}]", losses) for i, part in enumerate(content))
    blocks = [block for block in found if block is not None]
    losses.check_rest(blocks, content, f"{place}.content")
    return blocks


def _block(part: Part, place: str, losses: Losses) -> Part | None:
    kind = part["type"]
    if kind == "text":
        losses.lose_others(part, {"type", "text"}, place)
        return {"type": "text", "text": part["text"]}
    if kind == "image_url":
        losses.lose_others(part["image_url"], {"url"}, f"{place}.image_url")
        return {"type": "image", "source": _source(part["image_url"]["url"], f"{place}.image_url")}
    file = part.get("file", {})
    if kind == "file" and ("file_id" in file or "file_data" in file):
        return _document_block(file, place, losses)
    losses.lose(place, kind)
    return None


def _document_block(file: dict[str, Any], place: str, losses: Losses) -> Part:
    losses.lose_others(file, {"file_id", "file_data", "filename"}, f"{place}.file")
    if "file_id" in file:
        source = {"type": "file", "file_id": text_entry(file, "file_id", f"{place}.file")}
    else:
        source = _data_source(text_entry(file, "file_data", f"{place}.file"), f"{place}.file")
    title = {"title": file["filename"]} if file.get("filename") else {}
    return {"type": "document", "source": source, **title}


def _source(url: str, place: str) -> dict[str, Any]:
    """Return the source of an address, or of a data URL."""
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    return _data_source(url, place)


def _data_source(url: str, place: str) -> dict[str, Any]:
    data = _DATA_URL.fullmatch(url)
    if data is None:
        raise UnfitRecordError(f"{place} holds no data URL with a type and base64")
    return {"type": "base64", "media_type": data[1], "data": data[2]}


def system_of(messages: list[Message], losses: Losses) -> tuple[Any, list[Message]]:
    """Return the first messages of the system as the column ``system``, and the others.

    ``developer`` becomes ``system``, which is a loss.
    """
    prompts = list(takewhile(lambda one: one["role"] in {SYSTEM, DEVELOPER}, messages))
    blocks: list[Part] = []
    for number, message in enumerate(prompts):
        place = f"messages[{number}]"
        if message["role"] == DEVELOPER:
            losses.lose(place, DEVELOPER)
        losses.lose_others(message, {"role", "content"}, place)
        blocks += _as_blocks(_blocks(message["content"], place, losses))
    if len(prompts) == 1 and isinstance(messages[0]["content"], str):
        return messages[0]["content"], messages[1:]
    return blocks or None, messages[len(prompts) :]


def tools_written(tools: list[Tool], losses: Losses) -> list[dict[str, Any]]:
    """Return tools of a chat record with ``input_schema``; without parameters, of any object."""
    made = []
    for number, tool in enumerate(tools):
        place, function = f"{TOOLS}[{number}]", tool[FUNCTION]
        losses.lose_others(tool, {"type", FUNCTION}, place)
        known = {"name", "description", "parameters", "strict"}
        losses.lose_others(function, known, f"{place}.{FUNCTION}")
        written = {
            key: function[key] for key in ("name", "description", "strict") if key in function
        }
        made.append({**written, "input_schema": function.get("parameters") or {**_NO_SCHEMA}})
    return made
