from pathlib import Path

from tests.readers.agent_traces.sessions import Claude, call, read, text, tool_use


def test_a_session_is_one_record_with_facts(tmp_path: Path) -> None:
    talk = Claude()
    (record,) = read(
        tmp_path / "a.jsonl",
        {"type": "summary", "summary": "x", "leafUuid": "z"},
        talk.user("List."),
        talk.said("m1", {"type": "thinking", "thinking": "Use ls.", "signature": "s"}),
        talk.said("m1", text("I look.")),
        talk.said("m1", tool_use("t1", command="ls")),
        talk.result("t1", [text("bell.txt")]),
        talk.said("m2", text("One file.")),
    )
    answer = {"role": "assistant", "content": "I look.", "reasoning_content": "Use ls."}
    assert record == {
        "messages": [
            {"role": "user", "content": "List."},
            {**answer, "tool_calls": [call("t1", "Bash", command="ls")]},
            {"role": "tool", "tool_call_id": "t1", "name": "Bash", "content": "bell.txt"},
            {"role": "assistant", "content": "One file."},
        ],
        "metadata": {
            "harness": "claude_code",
            "session_id": "s-1",
            "cwd": "/w",
            "started_at": "2026-01-02T03:04:01.000Z",
            "cli_version": "2.1.0",
            "model": "m-1",
            "left_out": {"signature": 1, "summary": 1},
        },
    }


def test_parallel_results_stand_on_branches_of_their_own(tmp_path: Path) -> None:
    talk = Claude()
    asked = talk.user("Both.")
    first = talk.said("m1", tool_use("t1"))
    first_result = talk.result("t1", "1")
    second = talk.said("m1", tool_use("t2", "Read"), parentUuid=first["uuid"])
    second_result = talk.result("t2", "2")
    lines = [asked, first, first_result, second, second_result, talk.said("m2", text("Done."))]

    (record,) = read(tmp_path / "a.jsonl", *lines)

    assert [one["role"] for one in record["messages"]] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert [one["id"] for one in record["messages"][1]["tool_calls"]] == ["t1", "t2"]
    assert [one["name"] for one in record["messages"][2:4]] == ["Bash", "Read"]
    assert "left_out" not in record["metadata"]


def test_a_question_between_call_and_result_comes_after_it(tmp_path: Path) -> None:
    talk = Claude()
    (record,) = read(
        tmp_path / "a.jsonl",
        talk.user("Go."),
        talk.said("m1", tool_use("t1")),
        talk.user("Faster."),
        talk.result("t1", "1"),
        talk.said("m2", text("Done.")),
    )
    assert [one["content"] for one in record["messages"]] == ["Go.", None, "1", "Faster.", "Done."]


def test_a_branch_that_was_left_is_counted(tmp_path: Path) -> None:
    talk = Claude()
    asked = talk.user("Go.")
    (record,) = read(
        tmp_path / "a.jsonl",
        asked,
        talk.said("m1", text("Wrong.")),
        talk.user("No."),
        talk.said("m2", text("Right."), parentUuid=asked["uuid"]),
    )
    assert [one["content"] for one in record["messages"]] == ["Go.", "Right."]
    assert record["metadata"]["left_out"] == {"abandoned": 2}


def test_a_compacted_session_keeps_what_was_before(tmp_path: Path) -> None:
    talk = Claude()
    before = [talk.user("Go."), talk.said("m1", text("Gone."))]
    border = talk.line("system", parentUuid=None, logicalParentUuid=before[-1]["uuid"])
    after = [talk.user("Summary.", isCompactSummary=True), talk.said("m2", text("On."))]
    (record,) = read(tmp_path / "a.jsonl", *before, border, *after)
    contents = [one["content"] for one in record["messages"]]
    assert contents == ["Go.", "Gone.", "Summary.", "On."]


def test_what_is_no_talk_is_counted(tmp_path: Path) -> None:
    talk = Claude()
    (record,) = read(
        tmp_path / "a.jsonl",
        {"type": "file-history-snapshot", "messageId": "a", "snapshot": {}},
        talk.user("Caveat.", isMeta=True),
        talk.user("Go."),
        talk.said("m0", text("API Error: 529"), isApiErrorMessage=True),
        talk.said("m1", text("Gone.")),
        talk.line("system", content="hook"),
    )
    assert [one["content"] for one in record["messages"]] == ["Go.", "Gone."]
    assert record["metadata"]["left_out"] == {
        "api_error": 1,
        "file-history-snapshot": 1,
        "meta": 1,
        "system": 1,
    }


def test_the_talk_of_another_agent_is_left_out_or_a_record(tmp_path: Path) -> None:
    talk = Claude()
    main = [talk.user("Go."), talk.said("m1", tool_use("t1", "Task"))]
    side = [
        talk.user("Sub task.", isSidechain=True, parentUuid=None),
        talk.said("m9", text("Sub answer."), isSidechain=True),
    ]
    rest = [
        talk.result("t1", "Sub answer.", parentUuid=main[1]["uuid"]),
        talk.said("m2", text("Done.")),
    ]

    (record,) = read(tmp_path / "a.jsonl", *main, *side, *rest)
    both = read(tmp_path / "a.jsonl", *main, *side, *rest, sidechains="records")

    assert [one["content"] for one in record["messages"]] == ["Go.", None, "Sub answer.", "Done."]
    assert record["metadata"]["left_out"] == {"sidechain": 2}
    assert both[0]["messages"] == record["messages"]
    assert [one["content"] for one in both[1]["messages"]] == ["Sub task.", "Sub answer."]
    assert both[1]["metadata"]["sidechain"] == side[0]["uuid"]


def test_calls_may_be_without_results_and_results_without_calls(tmp_path: Path) -> None:
    talk = Claude()
    (record,) = read(
        tmp_path / "a.jsonl",
        talk.user("Go."),
        talk.said("m1", tool_use("t1")),
        talk.user([{"type": "tool_result", "tool_use_id": "t8", "content": "?"}, text("Stop.")]),
        talk.said("m2", tool_use("t2")),
    )
    assert [one["role"] for one in record["messages"]] == ["user", "assistant", "user", "assistant"]
    assert record["metadata"]["left_out"] == {"result_without_call": 1}


def test_reasoning_can_be_left_out(tmp_path: Path) -> None:
    talk = Claude()
    lines = [
        talk.user("Go."),
        talk.said("m1", {"type": "thinking", "thinking": "Hm."}),
        talk.said("m1", text("Gone.")),
    ]
    (record,) = read(tmp_path / "a.jsonl", *lines, reasoning=False)
    assert record["messages"][1] == {"role": "assistant", "content": "Gone."}
    assert record["metadata"]["left_out"] == {"reasoning": 1}


def test_several_texts_of_a_message_are_one(tmp_path: Path) -> None:
    talk = Claude()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    (record,) = read(
        tmp_path / "a.jsonl",
        talk.user([text("<reminder>"), text("Go.")]),
        talk.said("m1", text("I")),
        talk.said("m1", text("go.")),
        talk.user([text("See."), image]),
    )
    assert [one["content"] for one in record["messages"][:2]] == ["<reminder>\nGo.", "I\n\ngo."]
    assert [one["type"] for one in record["messages"][2]["content"]] == ["text", "image_url"]
    assert record["metadata"]["left_out"] == {"borders_of_texts": 2}


def test_a_line_whose_parent_is_not_in_the_file_stands_behind_the_one_before(
    tmp_path: Path,
) -> None:
    talk = Claude()
    (record,) = read(
        tmp_path / "a.jsonl",
        talk.user("Go.", parentUuid="of another file"),
        talk.said("m1", text("Gone.")),
        talk.user("On.", parentUuid="lost"),
        talk.said("m2", text("Done.")),
    )
    assert [one["content"] for one in record["messages"]] == ["Go.", "Gone.", "On.", "Done."]
