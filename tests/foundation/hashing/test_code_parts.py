"""Tests of dagster_dataops.foundation.hashing.code_parts."""

from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.history.nodes_with_history import edited_module

_TEXT = """
import orjson

from dagster_dataops import data_register

{constant}


def first(text):
    return text


def second(text):
    return first(text){end}


@data_register("data.code_parts", _concurrency_mode="single")
def work(record):
    record["text"] = {call}(record["text"]){used}
    return orjson.loads(orjson.dumps(record))
"""


@pytest.fixture(autouse=True)
def _importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))


def _parts(folder: Path, **values: str) -> dict[str, str]:
    usual = {"constant": "", "end": "", "call": "second", "used": ""}
    module: Any = edited_module(folder, "parts_of_code", _TEXT.format(**usual | values))
    found: dict[str, str] = module.work().__dataops__.identity_parts["code"]
    return {name.removeprefix("parts_of_code."): digest for name, digest in found.items()}


def _changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {name for name in one | other if one.get(name) != other.get(name)}


def test_an_edit_changes_the_part_of_the_function_alone(tmp_path):
    before = _parts(tmp_path)
    assert set(before) == {"first", "second", "work", "package orjson", "package python"}
    assert _changed(before, _parts(tmp_path, end=" + '!'")) == {"second"}
    assert _changed(before, _parts(tmp_path, call="first")) == {"work", "second"}


def test_a_constant_is_a_part_of_its_own(tmp_path):
    parts = [_parts(tmp_path, constant=f"LIMIT = {n}", used="[:LIMIT]") for n in (3, 4)]
    assert _changed(*parts) == {"constant parts_of_code.LIMIT"}


def test_the_digest_of_a_hidden_constant_is_expensive_to_guess_from(tmp_path):
    text = "sesame-open"
    names = ("WORD", "PASSWORD")
    digests = []
    for name in names:
        parts = _parts(tmp_path, constant=f"{name} = {text!r}", used=f" + {name}")
        digests.append(parts[f"constant parts_of_code.{name}"])
    assert digests[0] != digests[1]


def test_parts_are_equal_for_each_use_of_an_operator(tmp_path):
    assert _parts(tmp_path) == _parts(tmp_path)
