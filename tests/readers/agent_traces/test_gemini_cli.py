import json
from pathlib import Path
from typing import Any

from dagster_dataops.readers import read_agent_traces
from tests.readers.agent_traces.sessions import call, read

META = {
    "sessionId": "g-1",
    "projectHash": "a1",
    "startTime": "2026-01-02T03:04:00.000Z",
    "lastUpdated": "2026-01-02T03:05:00.000Z",
    "kind": "main",
}


def user(name: str, content: Any) -> dict[str, Any]:
    return {"id": name, "timestamp": "2026-01-02T03:04:01.000Z", "type": "user", "content": content}


def said(name: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "gemini", "content": content, "model": "g-5", **more}


def tool_call(name: str, output: Any, **more: Any) -> dict[str, Any]:
    response = {"functionResponse": {"id": name, "name": "read", "response": output}}
    return {"id": name, "name": "read", "args": {"path": "a"}, "result": [response], **more}


TALK = [
    user("u1", [{"text": "Read a."}]),
    said(
        "m1",
        "I look.",
        thoughts=[{"subject": "Plan", "description": "Read it.", "timestamp": "t"}],
        tokens={"input": 1},
        toolCalls=[
            tool_call("c1", {"output": "text of a"}, status="success"),
            tool_call("c2", {"error": "no such file"}, status="error"),
        ],
    ),
    {"id": "i1", "type": "info", "content": "Saved."},
    said("m2", [{"text": "It says: text of a."}]),
]
MESSAGES = [
    {"role": "user", "content": "Read a."},
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Plan: Read it.",
        "tool_calls": [call("c1", "read", path="a"), call("c2", "read", path="a")],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "text of a"},
    {
        "role": "tool",
        "tool_call_id": "c2",
        "name": "read",
        "content": "no such file",
        "is_error": True,
    },
    {"role": "assistant", "content": "It says: text of a."},
]
FACTS = {
    "harness": "gemini_cli",
    "session_id": "g-1",
    "started_at": "2026-01-02T03:04:00.000Z",
    "model": "g-5",
    "left_out": {"info": 1},
}


def test_a_session_of_lines(tmp_path: Path) -> None:
    (record,) = read(tmp_path / "session-1.jsonl", META, *TALK)
    assert record == {"messages": MESSAGES, "metadata": FACTS}


def test_a_session_of_one_object(tmp_path: Path) -> None:
    for indent in (2, None):
        path = tmp_path / f"session-{indent}.json"
        path.write_text(json.dumps({**META, "messages": TALK}, indent=indent))
        (record,) = read_agent_traces(str(path), pattern=None).and_return()
        assert record == {"messages": MESSAGES, "metadata": FACTS}


def test_messages_that_were_taken_back_or_replaced(tmp_path: Path) -> None:
    (record,) = read(
        tmp_path / "session-1.jsonl",
        META,
        user("u1", "a"),
        said("m1", ""),
        said("m1", "b"),
        user("u2", "c"),
        said("m2", "d"),
        {"$rewindTo": "u2"},
        {"$set": {"lastUpdated": "later"}},
        user("u3", "e"),
    )
    assert [one["content"] for one in record["messages"]] == ["a", "b", "e"]
    assert record["metadata"]["left_out"] == {"abandoned": 2}
    (record,) = read(
        tmp_path / "session-2.jsonl", META, user("u1", "a"), {"$set": {"messages": TALK[-1:]}}
    )
    assert [one["content"] for one in record["messages"]] == ["It says: text of a."]


def test_contents_of_several_forms(tmp_path: Path) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    sound = {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}}
    structured = {
        "id": "c",
        "name": "f",
        "args": {},
        "result": [{"functionResponse": {"response": {"n": 1}}}],
    }
    (record,) = read(
        tmp_path / "session-1.jsonl",
        META,
        user("u1", [{"text": "See"}, image, {"fileData": {}}, sound]),
        said("m1", "", toolCalls=[structured, {"name": "g", "args": {}, "result": "plain"}]),
        said("m2", "", toolCalls=[{"id": "d", "name": "h", "args": {}}]),
    )
    first, answer, *results, last = record["messages"]
    assert len(first["content"]) == 2
    assert first["content"][1] == {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,aGk="},
    }
    assert [one["content"] for one in results] == ['{"n": 1}', "plain"]
    assert answer["content"] is None
    assert last["tool_calls"] == [call("d", "h")]
    assert record["metadata"]["left_out"] == {"fileData": 1, "inlineData": 1}
