import json
from pathlib import Path

import pytest

from dagster_dataops import config, data, data_register, pipeline
from dagster_dataops.errors import DataPipelineError, StreamDefinitionError
from dagster_dataops.readers import read_agent_traces
from dagster_dataops.testing import assert_resumes_anywhere
from tests.readers.agent_traces.sessions import Claude, read, text, tool_use

KEY = "sk-ant-api03-" + "Ab1" * 30


def session(question: str = "Go.") -> list[dict]:
    talk = Claude()
    return [talk.user(question), talk.said("m1", text("Gone."))]


def write(path: Path, lines: list[dict], more: str = "") -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + more, "utf-8")


def test_a_running_session_is_read_without_its_torn_line(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", session(), '{"type": "assis')
    (record,) = read_agent_traces(str(tmp_path)).and_return()
    assert record["metadata"]["torn"]
    assert len(record["messages"]) == 2
    whole = json.dumps(session()[0])
    write(tmp_path / "a.jsonl", [], whole)  # complete, but without the end of its line
    (record,) = read_agent_traces(str(tmp_path)).and_return()
    assert "torn" not in record["metadata"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([json.dumps(session()[0]), "{broken " + KEY], "line 2"),
        ([json.dumps(session()[0]), "[]"], "line 2"),
        (['{"type": "user", "message": {"role": "user", "content": 1e400}}'], "line 1"),
        (['{"n": 123456789012345678901}'], "line 1"),
        (['{"text": "' + KEY + '"}'], "is no session of a known agent"),
        (['{"type": "user", "message": {"role": "user", "content": {"a": "' + KEY + '"}}}'],
         "is no sound session of claude_code: message 0.content holds an object"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_an_error_without_its_content(tmp_path, lines, expected) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(DataPipelineError, match=expected) as raised:
        list(read_agent_traces(str(tmp_path)).and_return())
    assert KEY not in str(raised.value)
    assert "12345" not in str(raised.value)


def test_damaged_files_can_be_skipped(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", session("First."))
    write(tmp_path / "b.jsonl", [{"n": 1}])
    write(tmp_path / "c.jsonl", session("Last."))
    (tmp_path / "empty.jsonl").touch()
    write(tmp_path / "summary.jsonl", [{"type": "summary", "leafUuid": "x"}])
    found = read_agent_traces(str(tmp_path)).and_return(on_error="skip")
    assert [one["messages"][0]["content"] for one in found] == ["First.", "Last."]


def test_the_harness_can_be_told(tmp_path: Path) -> None:
    assert read(tmp_path / "a.jsonl", *session(), harness="claude_code")
    assert read(tmp_path / "a.jsonl", *session(), harness="codex") == []
    for options in ({"harness": "claude"}, {"sidechains": "keep"}):
        with pytest.raises(StreamDefinitionError, match="use one of"):
            read_agent_traces(str(tmp_path), **options)


def test_the_stream_resumes_at_any_record(tmp_path: Path) -> None:
    for name in "abc":
        talk = Claude()
        side = {"isSidechain": True, "agentId": "x"}
        write(
            tmp_path / f"{name}.jsonl",
            [
                talk.user(name),
                talk.said("m1", text("Gone.")),
                talk.user("Sub.", **side),
                talk.said("m2", text("Sub answer."), **side),
            ],
        )
    assert_resumes_anywhere(lambda: read_agent_traces(str(tmp_path), sidechains="records"))


def test_a_session_that_grows_is_processed_again_and_the_others_are_not(
    root: Path, tmp_path: Path
) -> None:
    asked: list[str] = []

    @data_register("data.traces", _concurrency_mode="single", _reuse_outcomes=True)
    def noted(record: dict) -> dict:
        asked.append(record["messages"][0]["content"])
        return record

    folder = tmp_path / "sessions"
    folder.mkdir()
    for name in ("First.", "Second."):
        write(folder / f"{name}jsonl", session(name))
    talk = Claude()
    longer = [talk.user("Second."), talk.said("m1", text("Gone.")), talk.user("On.")]

    with config.temporary(data_process_resume=True):
        for lines in (None, longer):
            if lines:
                write(folder / "Second.jsonl", lines)
            with pipeline("traces") as ppl:
                ppl.noted = noted()
            found = ppl(read_agent_traces(str(folder)))
    assert asked == ["First.", "Second.", "Second."]
    assert [len(one["messages"]) for one in found] == [2, 3]


def test_secrets_in_sessions_are_masked(tmp_path: Path) -> None:
    talk = Claude()
    records = read(
        tmp_path / "a.jsonl",
        talk.user(f"Use {KEY}."),
        talk.said("m1", {"type": "thinking", "thinking": KEY}),
        talk.said("m1", tool_use("t1", command=f"curl -H {KEY}", name=KEY, env={KEY: [KEY]})),
        talk.result("t1", [text(f"token {KEY}")]),
        talk.said("m2", text("Done.")),
    )
    (masked,) = data.chat.Secrets()(records)
    assert KEY in json.dumps(records)
    assert KEY not in json.dumps(masked)
    assert json.dumps(masked).count("<SECRET>") == 7
    assert masked["messages"][1]["tool_calls"][0]["id"] == "t1"
