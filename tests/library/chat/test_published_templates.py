"""The chat templates of published models, rendered as transformers 5.24.0 renders them.

The templates are those in the wheel of trl 1.16.0, which are not part of this repository. To run:

    pip download --no-deps trl==1.16.0
    export TRL_WHEEL=$PWD/trl-1.16.0-py3-none-any.whl
    python -m pytest tests/library/chat/test_published_templates.py

The conversations are ours, and random; of what transformers wrote there are digests.
"""

import json
import os
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.errors import DataOpsError
from dagster_dataops.library.chat.tagged_templates import with_tags
from tests.each import each

FILE = Path(__file__).with_name("published_templates.jsonl")
CASES = [json.loads(line) for line in FILE.read_text("utf-8").strip().split("\n")]


@pytest.fixture(scope="module")
def templates() -> Mapping[str, str]:
    path = os.environ.get("TRL_WHEEL")
    if not path:
        pytest.skip("needs the wheel of trl 1.16.0: set TRL_WHEEL to its path")
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if name.endswith(".jinja")]
        # Python reads text files with the line ends of Unix; so do the digests.
        return {Path(name).stem: wheel.read(name).decode().replace("\r\n", "\n") for name in names}


@each("case", CASES)
def test_a_published_template_is_rendered_as_transformers_renders_it(
    case: dict[str, Any], templates: Mapping[str, str]
) -> None:
    template = templates[case["template"]]
    assert sha256(template.encode()).hexdigest() == case["sha256"]

    exact = {"arguments": "keep", "on_loss": "drop", "now": "2026-01-02T03:04:05"}
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    try:
        operator = data.chat.Render(template, **exact, **tokens, **case["options"])
        text = operator.forward({"messages": case["messages"]})["text"]
    except DataOpsError:
        text = None

    digest = None if text is None else sha256(text.encode()).hexdigest()
    assert digest == case["text_sha256"], text


def test_there_are_cases_of_errors_and_of_texts() -> None:
    texts = [case for case in CASES if case["text_sha256"]]

    assert len({case["template"] for case in texts}) > 60
    assert len(CASES) - len(texts) > 40


@each("name", ["qwen3", "qwen3_5_think", "qwen3_5_nothink", "glm4moe", "nemotron_3_nano"])
def test_a_template_with_tags_writes_the_same_texts(
    name: str, templates: Mapping[str, str]
) -> None:
    text = templates[name]
    tagged = with_tags(text + "\n")
    assert tagged is not None
    exact = {"on_loss": "drop", "now": "2026-01-02T03:04:05"}
    render, again = data.chat.Render(text, **exact), data.chat.Render(tagged, **exact)
    encode = data.tokens.EncodeChat("bytes", text, mask="patched", text_key="text", **exact)
    shown = 0
    for case in CASES:
        record = {"messages": case["messages"]}
        try:
            expected = render.forward(record)["text"]
        except DataOpsError:
            with pytest.raises(DataOpsError):
                again.forward(record)
            continue
        assert again.forward(record)["text"] == expected
        try:
            written = encode.forward(record)
        except DataOpsError:  # nothing of the assistant
            continue
        assert written["text"] == expected
        said = [one for one in case["messages"] if one["role"] == "assistant"]
        last = [one for one in said if one.get("weight") != 0][-1]
        if isinstance(content := last.get("content"), str) and content.strip():
            trained = encode.marked_text(written).rpartition("[[")[2].partition("]]")[0]
            assert content.rpartition("</think>")[2].strip() in trained
            shown += 1
    assert shown > 3
