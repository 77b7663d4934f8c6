"""Sessions of Gemini CLI: messages in one JSON object, or in the lines behind the first one.

Lines with ``$set`` change facts about the session, and ``$rewindTo`` takes back a message with all
that follow it. A message with a known id replaces that one.
"""

from collections.abc import Iterator
from typing import Any, Final

from dagster_dataops.datasets.chats.chat_record import (
    ASSISTANT,
    BETWEEN_THOUGHTS,
    REASONING,
    TOOL,
    USER,
)
from dagster_dataops.datasets.chats.json_fields import list_of_dicts, text_entry
from dagster_dataops.datasets.chats.tool_calls import json_text
from dagster_dataops.readers.agent_traces.sessions import Line, Session, call_of

HARNESS: Final = "gemini_cli"
_SET, _REWIND, _MESSAGES = "$set", "$rewindTo", "messages"
_ANSWERS: Final = ("gemini", "model")
_FAILED: Final = ("error", "cancelled")


def gemini_cli_sessions(lines: list[Line], *, sidechains: bool) -> Iterator[Session]:
    """Yield the session of a file.

    Args:
        lines: The lines of the file, or its one object.
        sidechains: Ignored: other agents have files of their own.
    """
    del sidechains
    session = Session()
    session.tell(harness=HARNESS)
    for number, message in enumerate(_messages(session, lines)):
        session.tell(started_at=message.get("timestamp"))
        kind = message.get("type")
        if kind == USER:
            session.messages.append({"role": USER, "content": _content(session, message)})
        elif kind in _ANSWERS:
            _add_answer(session, message, number)
        else:
            session.left_out[str(kind)] += 1
    yield session


def _messages(session: Session, lines: list[Line]) -> list[Line]:
    """Return the messages that were not taken back."""
    by_name: dict[object, Line] = {}
    for number, line in enumerate(lines):
        facts = line.get(_SET, line if "projectHash" in line else None)
        if isinstance(facts, dict):
            session.tell(session_id=facts.get("sessionId"), started_at=facts.get("startTime"))
            if facts.get(_MESSAGES) is not None:
                listed = list_of_dicts(_MESSAGES, facts[_MESSAGES])
                by_name = {line.get("id") or at: line for at, line in enumerate(listed)}
        elif _REWIND in line:
            names = list(by_name)
            start = names.index(line[_REWIND]) if line[_REWIND] in by_name else len(names)
            session.left_out["abandoned"] += len(names) - start
            by_name = {name: by_name[name] for name in names[:start]}
        else:
            by_name[line.get("id") or f"line {number}"] = line
    return list(by_name.values())


def _add_answer(session: Session, message: Line, number: int) -> None:
    session.tell(model=message.get("model"))
    answer: dict[str, Any] = {"role": ASSISTANT, "content": _content(session, message) or None}
    thoughts = list_of_dicts("thoughts", message.get("thoughts") or [])
    if texts := [text for thought in thoughts if (text := _thought(thought))]:
        answer[REASONING] = BETWEEN_THOUGHTS.join(texts)
    calls = list_of_dicts("toolCalls", message.get("toolCalls") or [])
    names = [call.get("id") or f"{call.get('name')}_{number}_{at}" for at, call in enumerate(calls)]
    if calls:
        answer["tool_calls"] = [
            call_of(call.get("name"), name, call.get("args"))
            for call, name in zip(calls, names, strict=True)
        ]
    session.messages.append(answer)
    for call, name in zip(calls, names, strict=True):
        if call.get("result") is not None:
            result = {
                "role": TOOL,
                "tool_call_id": name,
                "content": _result(session, call["result"]),
            }
            failed = {"is_error": True} if call.get("status") in _FAILED else {}
            session.messages.append(result | failed)


def _thought(thought: dict[str, Any]) -> str:
    texts = [thought.get("subject"), thought.get("description")]
    return ": ".join(text for text in texts if isinstance(text, str) and text)


def _content(session: Session, message: Line) -> str | list[dict[str, Any]]:
    """Return a content: a text, or a list of parts, of which texts and images are kept."""
    content = message.get("content")
    return _parts(session, content) if isinstance(content, list) else session.text_of(content)


def _result(session: Session, result: object) -> str | list[dict[str, Any]]:
    """Return what a tool returned: its ``output``, or all of it as JSON text."""
    if isinstance(result, list):
        return _parts(session, result)
    return result if isinstance(result, str) else json_text(result)


def _parts(session: Session, listed: list[Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in listed:
        part: dict[str, Any] = block if isinstance(block, dict) else {"text": block}
        response, data = part.get("functionResponse"), part.get("inlineData")
        if isinstance(text := part.get("text"), str):
            parts.append({"type": "text", "text": text})
        elif isinstance(response, dict):
            parts.append({"type": "text", "text": _response(response.get("response"))})
        elif isinstance(data, dict) and str(data.get("mimeType")).startswith("image/"):
            url = f"data:{data['mimeType']};base64,{text_entry(data, 'data', 'inlineData')}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        else:
            session.left_out[next(iter(part), "part")] += 1
    return parts


def _response(response: object) -> str:
    for key in ("output", "error"):
        if isinstance(response, dict) and isinstance(text := response.get(key), str):
            return text
    return json_text(response)
