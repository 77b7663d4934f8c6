import json
from pathlib import Path

from tests.readers.agent_traces.sessions import call, read, text, tool_use


def entry(name: str, parent: str | None, **message) -> dict:
    return {"type": "message", "id": name, "parentId": parent, "message": message}


def test_a_session_of_pi_is_its_last_branch(tmp_path: Path) -> None:
    calling = [
        {"type": "thinking", "thinking": "Ls."},
        text("I look."),
        {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
    ]
    image = {"type": "image", "data": "AAEC", "mimeType": "image/png"}
    (record,) = read(
        tmp_path / "a.jsonl",
        {"type": "session", "version": 3, "id": "p-1", "timestamp": "2026-01-02", "cwd": "/w"},
        {"type": "model_change", "id": "a", "parentId": None, "modelId": "m"},
        entry("b", "a", role="user", content="List."),
        entry("c", "b", role="assistant", content=[text("No.")], model="m"),
        entry("d", "b", role="assistant", content=calling, model="m"),
        entry("e", "d", role="toolResult", toolCallId="c1", toolName="bash", isError=True,
              content=[text("none"), image]),
        entry("f", "e", role="bashExecution", command="ls", output=""),
        entry("g", "f", role="assistant", content=[text("Sorry.")], model="m"),
    )  # fmt: skip
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}
    answer = {"role": "assistant", "content": "I look.", "reasoning_content": "Ls."}
    result = {"role": "tool", "tool_call_id": "c1", "name": "bash", "is_error": True}
    assert record["messages"] == [
        {"role": "user", "content": "List."},
        {**answer, "tool_calls": [call("c1", "bash", command="ls")]},
        {**result, "content": [text("none"), url]},
        {"role": "assistant", "content": "Sorry."},
    ]
    assert record["metadata"] == {
        "harness": "pi",
        "session_id": "p-1",
        "cwd": "/w",
        "started_at": "2026-01-02",
        "model": "m",
        "left_out": {"abandoned": 1, "bashExecution": 1, "model_change": 1},
    }


def test_a_session_of_droid_has_blocks(tmp_path: Path) -> None:
    def line(role: str, content, **more) -> dict:
        return {"type": "message", "message": {"role": role, "content": content, **more}}

    (record,) = read(
        tmp_path / "a.jsonl",
        {"type": "session_start", "id": "d-1", "title": "t", "cwd": "/w", "version": 2},
        line("user", [text("List.")]),
        line("user", [text("Shown.")], visibility="user_only"),
        line("assistant", [text("I look."), tool_use("t1", "LS")]),
        line("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]),
        line("assistant", [text("One.")]),
    )
    assert [one["content"] for one in record["messages"]] == ["List.", "I look.", "a", "One."]
    assert record["metadata"]["harness"] == "droid"
    assert record["metadata"]["left_out"] == {"user_only": 1}


def test_an_export_of_hermes_has_a_session_in_each_line(tmp_path: Path) -> None:
    function = {"name": "web", "arguments": '{"q": "a"}'}
    messages = [
        {"id": 1, "role": "user", "content": "Go.", "timestamp": 1.5},
        {
            "role": "assistant",
            "content": "",
            "reasoning": "Hm.",
            "tool_calls": json.dumps([{"id": "c1", "type": "function", "function": function}]),
        },
        {"role": "tool", "tool_call_id": "c1", "tool_name": "web", "content": "b"},
        {"role": "assistant", "content": "Done."},
    ]
    line = {"id": "h-1", "source": "cli", "model": "m", "system_prompt": "S", "messages": messages}

    first, second = read(tmp_path / "a.jsonl", line, {**line, "id": "h-2"})

    assert [one["content"] for one in first["messages"]] == ["S", "Go.", "", "b", "Done."]
    assert first["messages"][2]["tool_calls"] == [call("c1", "web", q="a")]
    assert first["messages"][2]["reasoning_content"] == "Hm."
    assert second["metadata"]["session_id"] == "h-2"
    assert second["metadata"]["left_out"] == {"other_keys": 2}
