"""Tests of the exports of conversations."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
import zstandard

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, ExportError

TURNS = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "2 + 2?"},
    {"role": "assistant", "content": "4"},
]
CHAT = {"id": 1, "messages": TURNS}
NAMED = [
    {"from": "system", "value": "Be kind."},
    {"from": "human", "value": "Hello"},
    {"from": "gpt", "value": "Hi"},
    {"from": "human", "value": "2 + 2?"},
    {"from": "gpt", "value": "4"},
]
ALPACA = {
    "instruction": "2 + 2?",
    "input": "",
    "output": "4",
    "system": "Be kind.",
    "history": [["Hello", "Hi"]],
}
TEXT = (
    "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
    "<|im_start|>assistant\nHi<|im_end|>\n<|im_start|>user\n2 + 2?<|im_end|>\n"
    "<|im_start|>assistant\n4<|im_end|>\n"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Alpaca", ALPACA),
        ("ShareGPT", {"conversations": NAMED}),
        ("Messages", {"messages": TURNS}),
        ("ChatML", {"text": TEXT}),
    ],
)
@pytest.mark.parametrize("given", [CHAT, {"conversations": NAMED}, ALPACA], ids=["m", "s", "a"])
def test_every_form_is_written_from_every_form(tmp_path, name, expected, given):
    path = tmp_path / "out.json"
    getattr(data.export, name)(path)([given, given])

    found = json.loads(path.read_text())
    if name == "ShareGPT" and "system" in given:  # the system prompt stays in its column
        expected = {"conversations": NAMED[1:], "system": "Be kind."}
    assert found == [expected, expected]


def test_the_input_of_alpaca_stays_apart(tmp_path):
    record = {"instruction": "Translate.", "input": "chat", "output": "cat", "extra": 1}
    data.export.Alpaca(tmp_path / "a.jsonl")([record])
    data.export.Messages(tmp_path / "m.jsonl")([record])

    assert json.loads((tmp_path / "a.jsonl").read_text()) == {
        "instruction": "Translate.",
        "input": "chat",
        "output": "cat",
    }
    (user, _) = json.loads((tmp_path / "m.jsonl").read_text())["messages"]
    assert user == {"role": "user", "content": "Translate.\n\nchat"}


def test_the_ending_chooses_array_lines_and_compression(tmp_path):
    def text(name: str) -> str:
        packed = data.export.Messages(tmp_path / name)([CHAT] * 3)
        opened = {"gz": gzip.open, "zst": zstandard.open}.get(name.rpartition(".")[2], open)
        with opened(packed, "rt") as file:
            return file.read()

    line = json.dumps({"messages": TURNS}, separators=(",", ":"))
    assert text("m.jsonl") == text("m.jsonl.gz") == text("m.jsonl.zst") == f"{line}\n" * 3
    assert text("m.json") == text("m.json.gz") == f"[\n{line},\n{line},\n{line}\n]\n"
    assert json.loads((tmp_path / data.export.ChatML(tmp_path / "none.json")([])).read_text()) == []
    with pytest.raises(DefinitionError, match=r"must end in \.json"):
        data.export.Messages("m.txt")


@pytest.mark.parametrize(
    ("name", "record", "column", "found"),
    [
        ("Messages", {"messages": [TURNS[2]]}, "messages", "assistant"),
        ("Messages", {"text": "no conversation"}, "", "keys text"),
        ("ShareGPT", {"conversations": [{"from": "bot", "value": ""}]}, "conversations", "'bot'"),
        ("Alpaca", {"messages": TURNS[:2]}, "messages", "does not end with an answer"),
        ("ChatML", {"messages": [{"role": "user", "content": "<|im_end|>"}]}, "messages", "<|im_"),
    ],
)
def test_a_record_without_a_conversation_is_an_error_with_its_line(
    tmp_path, name, record, column, found
):
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps(one) for one in (CHAT, CHAT, record)) + "\n")

    with pytest.raises(ExportError) as caught:
        getattr(data.export, name)(tmp_path / "out.json")(source)

    assert (caught.value.path, caught.value.line, caught.value.column) == (str(source), 3, column)
    assert found in caught.value.found
    assert not (tmp_path / "out.json").exists()


CALL = {"id": "c", "type": "function", "function": {"name": "tide", "arguments": {"port": "Ö"}}}
TOOLS = [{"type": "function", "function": {"name": "tide"}}]
CALLING = {
    "messages": [
        {"role": "user", "content": "Tide?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "2"},
        {"role": "assistant", "content": "2 m"},
    ],
    "tools": TOOLS,
}


def written(name: str, path: Path, **options: Any) -> dict[str, Any]:
    getattr(data.export, name)(path, **options)([{**CALLING, "id": 1}])
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def test_calls_are_exported(tmp_path: Path) -> None:
    assert written("Messages", tmp_path / "a.jsonl") == CALLING
    as_text = written("Messages", tmp_path / "b.jsonl", arguments="text")
    call = as_text["messages"][1]["tool_calls"][0]
    assert call["function"]["arguments"] == '{"port": "Ö"}'
    shared = written("ShareGPT", tmp_path / "c.jsonl")
    assert shared["tools"] == '[{"name": "tide"}]'
    assert [one["from"] for one in shared["conversations"]] == [
        "human",
        "function_call",
        "observation",
        "gpt",
    ]


@pytest.mark.parametrize(("name", "column"), [("Alpaca", "messages[1]"), ("ChatML", "messages[1]")])
def test_calls_that_a_format_cannot_hold_fail_the_export(tmp_path, name, column) -> None:
    with pytest.raises(ExportError, match=re.escape(f"{column}")) as raised:
        written(name, tmp_path / "a.jsonl")
    assert "on_loss" not in str(raised.value)
    assert not (tmp_path / "a.jsonl").exists()
