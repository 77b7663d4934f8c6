"""Tests of loading a Python file that a command names."""

import json
import sys
from pathlib import Path

import pytest

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.python_file import module_of_file
from tests.each import each


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])


def test_a_file_is_run_and_finds_the_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("value = 3")
    (tmp_path / "first_file.py").write_text("import beside_it\nvalue = beside_it.value")

    module = module_of_file(str(tmp_path / "first_file.py"), "FILE")

    assert module.value == 3
    assert sys.modules.pop("first_file") is module


def test_a_file_that_was_edited_replaces_its_module(tmp_path: Path) -> None:
    file = tmp_path / "edited_file.py"
    file.write_text("value = 1")
    module_of_file(str(file), "FILE")
    file.write_text("value = 'two'")
    module = module_of_file(str(file), "FILE")

    assert module.value == "two"
    assert sys.modules.pop("edited_file") is module


def test_a_file_with_the_name_of_another_module_leaves_that_module(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("value = 1")

    assert module_of_file(str(tmp_path / "json.py"), "FILE").value == 1
    assert sys.modules["json"] is json


@each("name", ["missing.py", "", ".", "file", "file.txt", "folder.py"])
def test_anything_but_a_python_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("value = 1")
    (tmp_path / "file.txt").write_text("value = 1")
    (tmp_path / "folder.py").mkdir(exist_ok=True)

    with pytest.raises(ConfigurationError, match="FILE is .* a Python file that exists"):
        module_of_file(str(tmp_path / name), "FILE")


@each(
    "case",
    [
        ("x = 1\nx.y", r"AttributeError: .*broken_file\.py, line 2"),
        ("import no_such_module", "ModuleNotFoundError: .*no_such_module.*line 1"),
        ("def f(:", r"SyntaxError: .*line 1"),
        ("raise KeyError", "KeyError: .*line 1"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_with_the_line(
    tmp_path: Path, case: tuple[str, str]
) -> None:
    text, reason = case
    (tmp_path / "broken_file.py").write_text(text)

    with pytest.raises(ConfigurationError, match=reason):
        module_of_file(str(tmp_path / "broken_file.py"), "FILE")
    sys.modules.pop("broken_file")
