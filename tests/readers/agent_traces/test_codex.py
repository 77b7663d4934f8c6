from pathlib import Path

from tests.readers.agent_traces.sessions import call, item, read

META = {
    "timestamp": "2026-01-02T03:04:00.000Z",
    "type": "session_meta",
    "payload": {
        "id": "c-1",
        "timestamp": "2026-01-02T03:04:00.000Z",
        "cwd": "/w",
        "cli_version": "0.60.0",
        "base_instructions": {"text": "Be brief."},
    },
}


def said(role: str, text: str) -> dict:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def test_the_items_of_a_session_are_turns(tmp_path: Path) -> None:
    (record,) = read(
        tmp_path / "rollout-1.jsonl",
        META,
        {"type": "turn_context", "payload": {"model": "g-5"}},
        said("developer", "Rules."),
        said("user", "List."),
        {"type": "event_msg", "payload": {"type": "user_message", "message": "List."}},
        item("reasoning", summary=[{"type": "summary_text", "text": "Ls."}], encrypted_content="z"),
        said("assistant", "I look."),
        item("function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
        item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c2"),
        item("function_call_output", call_id="c1", output="a"),
        item("custom_tool_call_output", call_id="c2", output="b"),
        said("assistant", "First."),
        said("assistant", "Second."),
    )
    answer = {"role": "assistant", "content": "I look.", "reasoning_content": "Ls."}
    calls = [call("c1", "shell", command=["ls"]), call("c2", "apply_patch", input="*** Begin")]
    assert record["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Rules."},
        {"role": "user", "content": "List."},
        {**answer, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "name": "shell", "content": "a"},
        {"role": "tool", "tool_call_id": "c2", "name": "apply_patch", "content": "b"},
        {"role": "assistant", "content": "First."},
        {"role": "assistant", "content": "Second."},
    ]
    assert record["metadata"] == {
        "harness": "codex",
        "session_id": "c-1",
        "cwd": "/w",
        "started_at": "2026-01-02T03:04:00.000Z",
        "cli_version": "0.60.0",
        "model": "g-5",
        "left_out": {"encrypted_reasoning": 1},
    }


def test_items_of_early_versions_stand_alone(tmp_path: Path) -> None:
    (record,) = read(
        tmp_path / "rollout-1.jsonl",
        {"id": "c-1", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"record_type": "state"},
        said("user", "List.")["payload"],
        item("function_call", name="shell", arguments="{}", call_id="c1")["payload"],
        item("function_call_output", call_id="c1", output="a")["payload"],
    )
    assert [one["role"] for one in record["messages"]] == ["user", "assistant", "tool"]
    assert record["metadata"] == {
        "harness": "codex",
        "session_id": "c-1",
        "started_at": "2025-05-01T00:00:00Z",
        "left_out": {"state": 1},
    }


def test_shells_searches_images_and_odd_arguments(tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAEC"}
    (record,) = read(
        tmp_path / "rollout-1.jsonl",
        item("message", role="user", content=[{"type": "input_text", "text": "See"}, image]),
        item("local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls"]}),
        item("function_call_output", call_id="c1", output={"content": "a", "success": True}),
        item("web_search_call", action={"type": "search", "query": "q"}),
        item("function_call", name="f", arguments='{"a": ', call_id="c3"),
        item("function_call_output", call_id="c3", output=[{"type": "input_text", "text": "b"}]),
        item("ghost_snapshot", ghost_commit={}),
        {"type": "compacted", "payload": {"message": "Short."}},
    )
    user, first, result, second, last = record["messages"]
    assert user["content"][1] == {"type": "image_url", "image_url": {"url": image["image_url"]}}
    assert first["tool_calls"] == [call("c1", "local_shell", type="exec", command=["ls"])]
    assert result["content"] == "a"
    assert second["tool_calls"][0]["function"]["name"] == "web_search"
    assert second["tool_calls"][1] == call("c3", "f", input='{"a": ')
    assert last["content"] == "b"
    assert record["metadata"]["left_out"] == {"compacted": 1, "ghost_snapshot": 1}


def test_calls_and_texts_of_other_forms(tmp_path: Path) -> None:
    (record,) = read(
        tmp_path / "rollout-1.jsonl",
        META,
        item("message", role="user", content=[{"text": "List"}]),
        item("custom_tool_call", name="bash", arguments='{"cmd":"ls"}', call_id="c1"),
        item("custom_tool_call_output", call_id="c1", output=[{"type": "input_text", "text": "a"}]),
        item("tool_search_call", id="t1", arguments={}),
    )
    assert record["messages"][1:] == [
        {"role": "user", "content": "List"},
        {"role": "assistant", "content": None, "tool_calls": [call("c1", "bash", cmd="ls")]},
        {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "a"},
    ]
    assert record["metadata"]["left_out"] == {"tool_search_call": 1}
