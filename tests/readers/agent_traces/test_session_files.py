import json
import random
import re
from pathlib import Path

import pytest

from dagster_dataops import config, data, data_register, pipeline
from dagster_dataops.errors import DataPipelineError, StreamDefinitionError
from dagster_dataops.readers import read_agent_traces
from dagster_dataops.testing import assert_resumes_anywhere
from tests.each import each
from tests.library.chat.damage import damaged
from tests.readers.agent_traces.sessions import Claude, item, read, text, tool_use

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


def test_a_file_that_is_damaged_between_two_of_its_records_is_an_error(tmp_path: Path) -> None:
    talk = Claude()
    lines = [talk.user("Go."), talk.user("Sub.", isSidechain=True, agentId="x")]
    write(tmp_path / "a.jsonl", lines)
    stream = read_agent_traces(str(tmp_path), sidechains="records").and_return()
    next(iter(stream))
    state = stream.state_dict()
    stream = read_agent_traces(str(tmp_path), sidechains="records").and_return()
    stream.load_state_dict(state)
    write(tmp_path / "a.jsonl", [{"n": 1}])
    with pytest.raises(DataPipelineError, match="is no session of a known agent"):
        list(stream)


PI_CALL = {"type": "toolCall", "id": "c", "name": "n", "arguments": {}}
HERMES_CALL = {"id": "c", "function": {"name": "f", "arguments": "{}"}}


def of_pi(content, role: str = "assistant", **more) -> dict:
    return {"type": "message", "id": "a", "message": {"role": role, "content": content, **more}}


def of_hermes(call: dict) -> dict:
    return {"id": "h", "source": "cli", "messages": [{"role": "assistant", "tool_calls": [call]}]}


def without(value: dict, key: str) -> dict:
    return {name: one for name, one in value.items() if name != key}


INCOMPLETE = [
    (item("function_call", arguments="{}", call_id="c"), "function.name holds null"),
    (item("custom_tool_call", name=1, input="a"), "function.name holds a number"),
    (item("function_call", name="f", call_id=1), "id holds a number"),
    (item("function_call_output", output="a"), "tool_call_id holds null"),
    (of_pi([without(PI_CALL, "name")]), "function.name holds null"),
    (of_pi([without(PI_CALL, "id")]), "id holds null"),
    (of_pi([text("a")], "toolResult"), "tool_call_id holds null"),
    (of_pi([{"type": "image", "data": "AAEC"}], "user"), "mimeType holds nothing"),
    (of_hermes(without(HERMES_CALL, "id")), "id holds null"),
    (of_hermes({"id": "c", "function": {}}), "function.name holds null"),
]


@each("case", INCOMPLETE)
def test_nothing_is_made_up_for_what_an_agent_did_not_write(case, tmp_path: Path) -> None:
    line, message = case
    with pytest.raises(DataPipelineError, match=message):
        read(tmp_path / "a.jsonl", line)


def said_by_codex(*parts: object) -> dict:
    return item("message", role="user", content=[{"type": "input_text", "text": "Go."}, *parts])


LEFT_OUT = [
    ([said_by_codex({"type": "input_text"})], {"input_text": 1}),
    ([said_by_codex(), item("message", role="user", content={"a": 1})],
     {"content": 1, "empty_turn": 1}),
    ([said_by_codex(), item("reasoning", summary=[{"type": "summary_text"}, 1])],
     {"None": 1, "summary_text": 1}),
    ([said_by_codex(), item("function_call", name="f", call_id="c"),
      item("function_call_output", call_id="c", output={"success": True})], {"content": 1}),
    ([of_pi([text("Go."), 1])], {"None": 1}),
    ([of_pi({"a": 1}), {**of_pi("Go.", "user"), "id": "b", "parentId": "a"}],
     {"content": 1, "empty_turn": 1}),
]  # fmt: skip


@each("case", LEFT_OUT)
def test_contents_of_other_forms_are_counted(case, tmp_path: Path) -> None:
    lines, expected = case
    (record,) = read(tmp_path / "a.jsonl", *lines)
    assert record["metadata"]["left_out"] == expected


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


@pytest.mark.slow
def test_a_damaged_session_is_an_error_or_a_sound_record(tmp_path: Path) -> None:
    chance = random.Random(1)
    talk = Claude()
    claude = [
        talk.user("Go."),
        talk.said("m1", {"type": "thinking", "thinking": "t", "signature": "s"}),
        talk.said("m1", tool_use("t1", a=1)),
        talk.result("t1", [text("x"), {"type": "image", "source": {"type": "url", "url": "u"}}]),
        talk.user("Sub.", isSidechain=True),
        talk.said("m2", text("b")),
    ]
    codex = [
        {"type": "session_meta", "payload": {"id": "c", "base_instructions": {"text": "t"}}},
        item("message", role="user", content=[{"type": "input_text", "text": "a"}]),
        item("reasoning", summary=[{"type": "summary_text", "text": "A"}]),
        item("function_call", name="f", arguments="{}", call_id="c1"),
        item("function_call_output", call_id="c1", output={"content": "a"}),
        item("message", role="assistant", content=[{"type": "output_text", "text": "a"}]),
    ]
    calling = [text("a"), {"type": "toolCall", "id": "c", "name": "n", "arguments": {}}]
    result = {"role": "toolResult", "toolCallId": "c", "content": [text("a")], "isError": True}
    pi = [
        {"type": "session", "id": "p", "cwd": "/"},
        {"type": "message", "id": "a", "message": {"role": "user", "content": "g"}},
        {"type": "message", "id": "b", "parentId": "a",
         "message": {"role": "assistant", "content": calling}},
        {"type": "message", "id": "c", "parentId": "b", "message": result},
    ]  # fmt: skip
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    hermes = [
        {
            "id": "h",
            "source": "cli",
            "system_prompt": "s",
            "tools": [{"name": "a"}],
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "", "reasoning": "r", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "tool_name": "f", "content": "r"},
            ],
        }
    ]
    checked = data.chat.ToMessages(order="any", unanswered="keep")
    sound, refused = 0, []
    for number in range(400):
        lines = damaged([claude, codex, pi, hermes][number % 4], chance)
        write(tmp_path / "a.jsonl", lines)
        try:
            records = list(read_agent_traces(str(tmp_path), sidechains="records").and_return())
        except DataPipelineError as error:
            refused.append(str(error))
            continue
        for record in records:
            checked.forward(record)
            sound += 1
    assert sound > 200
    assert [one for one in refused if not re.search("is no s|a JSON", one)] == []
