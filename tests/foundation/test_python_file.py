"""Tests of loading a Python file that a command names."""

import json
import sys
from pathlib import Path

import pytest

from tests.command_line import main
from tests.each import each

PIPELINE = "from dagster_dataops import Pipeline\n{} = Pipeline('docs')\n"


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> "Said":
    return Said(tmp_path, capsys)


class Said:
    """What a command says about a file that has no pipeline of the name ``none``."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def of(self, name: str, text: str | None = None) -> str:
        if text is not None:
            (self.folder / name).write_text(text)
        assert main(["try", "node", "--pipeline", f"{self.folder / name}:none"]) == 1
        return self._capsys.readouterr().err


def test_a_file_is_run_and_finds_the_modules_beside_it(said: Said) -> None:
    (said.folder / "beside_it.py").write_text(PIPELINE.format("found_beside"))

    assert "it has found_beside" in said.of("first_file.py", "from beside_it import *")
    assert sys.modules.pop("first_file").found_beside


def test_a_file_that_was_edited_replaces_its_module(said: Said) -> None:
    assert "it has one" in said.of("edited_file.py", PIPELINE.format("one"))
    assert "it has another" in said.of("edited_file.py", PIPELINE.format("another"))
    assert not hasattr(sys.modules.pop("edited_file"), "one")


def test_a_file_with_the_name_of_another_module_leaves_that_module(said: Said) -> None:
    assert "it has one" in said.of("json.py", PIPELINE.format("one"))
    assert sys.modules["json"] is json


@each("name", ["missing.py", ".", "file", "file.txt", "folder.py"])
def test_anything_but_a_python_file_is_refused(said: Said, name: str) -> None:
    (said.folder / "file").write_text("value = 1")
    (said.folder / "file.txt").write_text("value = 1")
    (said.folder / "folder.py").mkdir(exist_ok=True)

    assert "a Python file that exists, NAME.py" in said.of(name)


@each(
    "case",
    [
        ("x = 1\nx.y", "AttributeError: ", "broken_file.py, line 2"),
        ("import no_such_module", "ModuleNotFoundError: ", "line 1"),
        ("def f(:", "SyntaxError: ", "line 1"),
        ("raise KeyError", "KeyError: ", "line 1"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_with_the_line(
    said: Said, case: tuple[str, str, str]
) -> None:
    text, error, line = case
    message = said.of("broken_file.py", text)
    assert error in message
    assert line in message
    sys.modules.pop("broken_file")
