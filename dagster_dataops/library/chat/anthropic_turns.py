"""Write the turns of Anthropic: messages whose contents are lists of blocks."""

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    DEVELOPER,
    MESSAGES,
    REASONING,
    SYSTEM,
    TOOL,
    TOOLS,
    USER,
    Message,
)
from dagster_dataops.datasets.chats.content_parts import Part
from dagster_dataops.datasets.chats.json_fields import text_entry
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.datasets.chats.tool_calls import FUNCTION, Call, Tool
from dagster_dataops.errors import UnfitRecordError
from dagster_dataops.library.chat.turns import TWO_PROMPTS, without
from dagster_dataops.records import Record

_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
_NO_SCHEMA: Final = {"type": "object"}  # of a tool without parameters; a schema is required


def write_anthropic(record: dict[str, Any], losses: Losses) -> Record:
    """Return a chat record in normal form as a request to Anthropic: ``system``, turns, tools."""
    rest: dict[str, Any] = without(record, (MESSAGES, TOOLS))
    before = rest.pop("system", None)
    system, messages = _system_of(record[MESSAGES], losses)
    if before and before != system:
        raise UnfitRecordError(TWO_PROMPTS)
    result = {"system": system} if system is not None else {}
    if record.get(TOOLS) is not None:
        result[TOOLS] = _tools_written(record[TOOLS], losses)
    skipped = len(record[MESSAGES]) - len(messages)
    turns = _turns_of(messages, losses, skipped)
    losses.check_rest(turns, record[MESSAGES], MESSAGES)
    return rest | result | {MESSAGES: turns}


def _turns_of(messages: list[Message], losses: Losses, first: int = 0) -> list[dict[str, Any]]:
    """Return the turns of messages in normal form, without the system prompt at the start.

    Results in a row, and a message of the user after them, are one turn.
    """
    turns: list[dict[str, Any]] = []
    after_result = False
    for number, message in enumerate(messages):
        place = f"messages[{number + first}]"
        turn = _WRITERS[message["role"]](message, place, losses)
        if turn is None:
            continue
        beside_content = message["content"] is None or "audio" in message
        losses.check_rest(turn["content"], beside_content, place)
        if after_result and turn["role"] == USER:
            turns[-1]["content"] += _as_blocks(turn["content"])
        else:
            turns.append(turn)
        after_result = message["role"] == TOOL
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
    parts = (_block(part, f"{place}.content[{i}]", losses) for i, part in enumerate(content))
    blocks = [block for block in parts if block is not None]
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


def _system_of(messages: list[Message], losses: Losses) -> tuple[Any, list[Message]]:
    """Return the first messages of the system as the column ``system``, and the others.

    ``developer`` becomes ``system``, which is a loss.
    """
    prompts = list(takewhile(lambda message: message["role"] in {SYSTEM, DEVELOPER}, messages))
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


def _tools_written(tools: list[Tool], losses: Losses) -> list[dict[str, Any]]:
    """Return tools of a chat record with ``input_schema``; without parameters, of any object."""
    listed = []
    for number, tool in enumerate(tools):
        place, function = f"{TOOLS}[{number}]", tool[FUNCTION]
        losses.lose_others(tool, {"type", FUNCTION}, place)
        known = {"name", "description", "parameters", "strict"}
        losses.lose_others(function, known, f"{place}.{FUNCTION}")
        written = {
            key: function[key] for key in ("name", "description", "strict") if key in function
        }
        listed.append({**written, "input_schema": function.get("parameters") or {**_NO_SCHEMA}})
    return listed
