"""Sessions of Pi, Droid and Hermes, whose lines hold whole messages."""

from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.datasets.chats.anthropic_blocks import messages_of
from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    BETWEEN_THOUGHTS,
    REASONING,
    SYSTEM,
    TOOL,
    USER,
)
from dagster_dataops.datasets.chats.json_fields import json_list, list_of_dicts, text_entry
from dagster_dataops.datasets.chats.losses import Losses
from dagster_dataops.datasets.chats.tool_calls import checked_tools
from dagster_dataops.readers.agent_traces.sessions import (
    Line,
    Session,
    block_type,
    branch,
    call_of,
)

PI, DROID, HERMES = "pi", "droid", "hermes"
_PI_PARENTS: Final = ("parentId",)
_OF_HERMES: Final = frozenset(
    {"role", "content", "tool_calls", "tool_call_id", "tool_name", "name", "reasoning", REASONING}
)


def pi_sessions(lines: list[Line], *, sidechains: bool) -> Iterator[Session]:
    """Yield the session of a file of Pi: the branch of its last line."""
    del sidechains
    session = Session()
    session.tell(harness=PI)
    names = branch([line for line in lines if line.get("type") != "session"], "id", _PI_PARENTS)
    for line in lines:
        message = line.get("message")
        if line.get("type") == "session":
            session.tell(session_id=line.get("id"), cwd=line.get("cwd"))
            session.tell(started_at=line.get("timestamp"))
        elif line.get("type") != "message" or not isinstance(message, dict):
            session.left_out[str(line.get("type"))] += 1
        elif names is not None and str(line.get("id")) not in names:
            session.left_out["abandoned"] += 1
        else:
            _add_pi_message(session, message)
    yield session


def _add_pi_message(session: Session, message: dict[str, Any]) -> None:
    role, content = message.get("role"), message.get("content")
    added: dict[str, Any]
    if role == "toolResult":
        added = {"role": TOOL, "tool_call_id": message.get("toolCallId")}
        added["content"] = _pi_content(session, content)
        if message.get("isError"):
            added["is_error"] = True
    elif role == USER:
        added = {"role": USER, "content": _pi_content(session, content)}
    elif role == ASSISTANT:
        session.tell(model=message.get("model"))
        added = _pi_answer(session, content)
    else:
        session.left_out[str(role)] += 1
        return
    session.messages.append(added)


def _pi_answer(session: Session, content: object) -> dict[str, Any]:
    blocks = content if isinstance(content, list) else []
    answer: dict[str, Any] = {"role": ASSISTANT, "content": None}
    thoughts = [
        text_entry(block, "thinking", "") for block in blocks if block_type(block) == "thinking"
    ]
    calls = [
        call_of(block.get("name"), block.get("id"), block.get("arguments"))
        for block in blocks
        if block_type(block) == "toolCall"
    ]
    others = [block for block in blocks if block_type(block) not in ("thinking", "toolCall")]
    if said := others if isinstance(content, list) else content:
        answer["content"] = _pi_content(session, said)
    if any(thoughts):
        answer[REASONING] = BETWEEN_THOUGHTS.join(filter(None, thoughts))
    if calls:
        answer["tool_calls"] = calls
    return answer


def _pi_content(session: Session, content: object) -> str | list[dict[str, Any]]:
    if not isinstance(content, list):
        return session.text_of(content)
    parts: list[dict[str, Any]] = []
    for block in content:
        kind = block_type(block)
        if kind == "text":
            parts.append({"type": "text", "text": text_entry(block, "text", "")})
        elif kind == "image":
            media_type, data = (text_entry(block, key, "") for key in ("mimeType", "data"))
            url = f"data:{media_type};base64,{data}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        else:
            session.left_out[str(kind)] += 1
    return parts or ""


def droid_sessions(lines: list[Line], *, sidechains: bool) -> Iterator[Session]:
    """Yield the session of a file of Droid, whose messages have the blocks of Anthropic."""
    del sidechains
    session, losses = Session(), Losses("a chat record", "drop")
    session.tell(harness=DROID)
    for number, line in enumerate(lines):
        message = line.get("message")
        if line.get("type") == "session_start":
            session.tell(session_id=line.get("id"), cwd=line.get("cwd"))
            session.tell(cli_version=line.get("version"), started_at=line.get("timestamp"))
        elif line.get("type") != "message" or not isinstance(message, dict):
            session.left_out[str(line.get("type"))] += 1
        elif message.get("visibility") == "user_only":  # the model never saw it
            session.left_out["user_only"] += 1
        else:
            session.tell(started_at=line.get("timestamp"))
            turn = {key: message.get(key) for key in ("role", "content")}
            session.messages += messages_of(turn, f"message {number}", losses)
    session.left_out += losses.counts
    yield session


def hermes_sessions(lines: list[Line], *, sidechains: bool) -> Iterator[Session]:
    """Yield the session of each line of a file of Hermes, whose messages are those of OpenAI."""
    del sidechains
    for line in lines:
        session = Session()
        session.tell(
            harness=HERMES,
            session_id=line.get("id"),
            model=line.get("model"),
            cwd=line.get("cwd"),
            started_at=line.get("started_at"),
            cli_version=line.get("version"),
        )
        messages = list_of_dicts("messages", json_list(line.get("messages"), "messages"))
        prompt = line.get("system_prompt")
        if isinstance(prompt, str) and prompt and not _begins_with_prompt(messages):
            session.messages.append({"role": SYSTEM, "content": prompt})
        for message in messages:
            _add_hermes_message(session, message)
        if line.get("tools") is not None:
            session.tools = checked_tools(json_list(line["tools"], "tools"), "tools")
        yield session


def _begins_with_prompt(messages: list[dict[str, Any]]) -> bool:
    return bool(messages) and messages[0].get("role") == SYSTEM


def _add_hermes_message(session: Session, message: dict[str, Any]) -> None:
    answer = {
        key: value for key, value in message.items() if key in _OF_HERMES and value is not None
    }
    session.left_out["other_keys"] += len(
        [key for key, value in message.items() if key not in _OF_HERMES and value is not None]
    )
    reasoning = answer.pop("reasoning", None) or answer.get(REASONING)
    if reasoning:
        answer[REASONING] = reasoning
    answer.pop("tool_name", None)  # the call has it
    calls = json_list(answer.pop("tool_calls", None), "tool_calls")
    if listed := list_of_dicts("tool_calls", calls or []):
        answer["tool_calls"] = [_hermes_call(call) for call in listed]
    session.messages.append(answer)


def _hermes_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    function = function if isinstance(function, dict) else call
    identity = call.get("id") or call.get("call_id")
    return call_of(function.get("name"), identity, function.get("arguments"))
