"""Tests of foundation.hashing.code_origins and moved_modules."""

import importlib.util
import os
import subprocess
import sys
import textwrap
import zoneinfo
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagster_dataops.foundation.hashing.moved_modules import _FORMER, counted_module
from dagster_dataops.foundation.hashing.values import function_name
from tests.warm_python import WarmPython

_REPOSITORY = Path(__file__).parents[2]
_FILES = {
    "proj/__init__.py": "",
    "proj/texts.py": """
        from functools import lru_cache, partial
        LIMIT = 3
        def clean(text):
            return text[:LIMIT]
        @lru_cache
        def slow(text):
            return text * 2
        class Base:
            def finish(self, text):
                return text + "!"
        """,
    "proj/other.py": """
        def used(text):
            return text + "u"
        def unused(text):
            return text + "n"
        """,
    "proj/lazy.py": """
        from proj import deep
        def late(text):
            return deep.last(text)
        """,
    "proj/deep.py": """
        def last(text):
            return text + "d"
        """,
    "proj/wrapping.py": """
        import functools
        def times(factor):
            def wrap(function):
                @functools.wraps(function)
                def inner(record):
                    return function(record) * factor
                return inner
            return wrap
        class Counted:
            def __init__(self, function, step=1):
                functools.update_wrapper(self, function)
                self.function, self.step = function, step
            def __call__(self, record):
                return self.function(record) + self.step
        """,
    "proj/operators.py": """
        import re
        from contextlib import contextmanager
        from functools import partial
        from pathlib import Path
        import vendored
        import proj.other
        from proj import texts
        from proj.texts import clean, slow
        from proj.wrapping import Counted, times
        HERE = Path(__file__).parent
        LINES = [str(HERE / "words.txt")]
        class Scale:
            def __init__(self, factor):
                self.factor = factor
            def __call__(self, value):
                return value * self.factor
            def of(self, value):
                return value + self.factor
        SCALE = Scale(2)
        SHIFT = Scale(7)
        PART = partial(clean, 5)
        COUNTED = Counted(clean)
        @contextmanager
        def opened(text):
            yield text + "o"
        @times(2)
        def doubled(record):
            return 1
        class Target(texts.Base):
            def forward(self, data):
                from . import lazy
                with opened("a") as one:
                    return self.finish(clean(one) + texts.clean(one) + proj.other.used(one))
        def target(data):
            return [doubled(data), SCALE(1), SHIFT.of(1), PART, COUNTED(1), slow("a"), Target,
                    HERE, LINES, re.sub, vendored.f(1)]
        """,
    "site-packages/vendored/__init__.py": "def f(value):\n    return value\n",
    "site-packages/vendored_code-1.0.dist-info/METADATA": "Name: vendored-code\nVersion: 1.0\n",
    "site-packages/vendored_code-1.0.dist-info/top_level.txt": "vendored\n",
    "site-packages/vendored_code-1.0.dist-info/RECORD": "vendored/__init__.py,,\n",
}
_FILES = {name: textwrap.dedent(text) for name, text in _FILES.items()}
_PRINT = """
from dagster_dataops.foundation.hashing.code import code_digest
from proj.operators import target
print(code_digest(target, home="proj.operators"))
"""


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def _version(folder: Path, script: str = _PRINT, **environment: str) -> str:
    """Return the version that a new process computes, in a project in ``folder``."""
    paths = [str(folder), str(folder / "site-packages"), str(_REPOSITORY)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython("dagster_dataops.foundation.hashing.code") as warm:
        yield warm


def _forked_version(python: WarmPython, folder: Path) -> str:
    """Return the version that a fork finds which has imported nothing of the project."""
    return python.run(_PRINT, folder=folder, path=[folder / "site-packages"]).strip()


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("usual")
    _write(folder, _FILES)
    return _version(folder)


CHANGES = {
    "a decorator of the user": ("proj/wrapping.py", "* factor", "+ factor"),
    "an argument of a decorator": ("proj/operators.py", "@times(2)", "@times(3)"),
    "the state of an object that is called": ("proj/operators.py", "Scale(2)", "Scale(3)"),
    "the state of an object whose method is called": ("proj/operators.py", "Scale(7)", "Scale(8)"),
    "the class of an object that is called": ("proj/operators.py", "value * self", "value + self"),
    "an argument of functools.partial": ("proj/operators.py", "clean, 5", "clean, 6"),
    "a class that wraps functions": ("proj/wrapping.py", ") + self.step", ") - self.step"),
    "an attribute of what wraps a function": ("proj/wrapping.py", "step=1", "step=2"),
    "a helper imported by name": ("proj/texts.py", "text[:LIMIT]", "text[LIMIT:]"),
    "a constant of a helper elsewhere": ("proj/texts.py", "LIMIT = 3", "LIMIT = 4"),
    "a function below lru_cache": ("proj/texts.py", "text * 2", "text * 3"),
    "a method of a base class elsewhere": ("proj/texts.py", 'text + "!"', 'text + "?"'),
    "a function of a module of a package": ("proj/other.py", '"u"', '"v"'),
    "a context manager": ("proj/operators.py", 'text + "o"', 'text + "p"'),
    "a module imported when it runs": ("proj/lazy.py", "last(text)", 'last(text) + ""'),
    "what such a module imports": ("proj/deep.py", '"d"', '"e"'),
    "the version of a distribution": (
        "site-packages/vendored_code-1.0.dist-info/METADATA",
        "Version: 1.0",
        "Version: 1.1",
    ),
}


@pytest.mark.parametrize(("name", "before", "after"), CHANGES.values(), ids=CHANGES)
def test_an_operator_has_another_version_when_this_changes(
    tmp_path: Path, python: WarmPython, usual: str, name: str, before: str, after: str
) -> None:
    assert before in _FILES[name]
    _write(tmp_path, {**_FILES, name: _FILES[name].replace(before, after)})
    assert _forked_version(python, tmp_path) != usual


SAME = {
    "a function that nothing uses": ("proj/other.py", '"n"', '"m"'),
    "a comment elsewhere": ("proj/texts.py", "LIMIT = 3", "LIMIT = 3  # at most"),
    "a docstring elsewhere": ("proj/lazy.py", "def late(text):", 'def late(text):\n    "Late."'),
    "line breaks": ("proj/texts.py", "return text[:LIMIT]", "return text[\n        :LIMIT\n    ]"),
    "code of a distribution, but not its version": (
        "site-packages/vendored/__init__.py",
        "return value",
        "return value + 1",
    ),
}


@pytest.mark.parametrize(("name", "before", "after"), SAME.values(), ids=SAME)
def test_an_operator_has_the_same_version_when_this_changes(
    tmp_path: Path, python: WarmPython, usual: str, name: str, before: str, after: str
) -> None:
    assert before in _FILES[name]
    _write(tmp_path, {**_FILES, name: _FILES[name].replace(before, after)})
    assert _forked_version(python, tmp_path) == usual


@pytest.mark.parametrize(
    ("before", "environment"),
    [
        ("", {"PYTHONHASHSEED": "7"}),
        ("", {"PYTHONDONTWRITEBYTECODE": "1"}),
        pytest.param("import proj.lazy, proj.other, dagster\n", {}, marks=pytest.mark.slow),
        ("import vendored, proj.texts\nproj.texts.slow('a')\n", {}),
    ],
    ids=["hash seed", "no bytecode", "other imports first", "a filled lru_cache"],
)
def test_the_version_is_the_same_in_every_process_and_folder(
    tmp_path: Path, usual: str, before: str, environment: dict[str, str]
) -> None:
    folder = tmp_path / "elsewhere" / "deeper"
    _write(folder, _FILES)
    assert _version(folder, before + _PRINT, **environment) == usual
    assert _version(folder, before + _PRINT, **environment) == usual  # now from its bytecode


@pytest.mark.slow
def test_a_package_that_is_installed_counts_by_its_code_where_it_is_the_operators_own(
    tmp_path: Path,
) -> None:
    for value, name in ((1, "one"), (2, "two")):
        _write(
            tmp_path / name / "site-packages",
            {
                "mine/__init__.py": "",
                "mine/operators.py": """
                    from also_mine import more
                    def target(data):
                        return more(data)
                    """,
                "also_mine.py": f"def more(data):\n    return {value}\n",
                "mine-1.dist-info/METADATA": "Name: mine\nVersion: 1\n",
                "mine-1.dist-info/top_level.txt": "mine\nalso_mine\n",
                "mine-1.dist-info/RECORD": "mine/__init__.py,,\nalso_mine.py,,\n",
            },
        )
    script = _PRINT.replace("proj", "mine")
    assert _version(tmp_path / "one", script) != _version(tmp_path / "two", script)


_WITH_FINDER = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("proj.deep"):
            raise KeyError(name)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("before", ["", _WITH_FINDER], ids=["usual finders", "one that raises"])
def test_a_folder_without_init_in_a_package_that_is_not_imported_counts_by_its_code(
    tmp_path: Path, before: str
) -> None:
    versions = []
    for name, value in (("one", 1), ("same", 1), ("two", 2)):
        files = {
            "proj/__init__.py": "",
            "proj/deep/__init__.py": "raise RuntimeError('imported')",
            "proj/deep/folder/inner/leaf.py": f"def last(data):\n    return {value}\n",
            "proj/operators.py": """
                def target(data):
                    from proj.deep.folder.inner import leaf
                    return leaf.last(data)
                """,
        }
        _write(tmp_path / name, files)
        versions.append(_version(tmp_path / name, before + _PRINT))
    assert versions[0] == versions[1] != versions[2]


_EDITED = """
from pathlib import Path
from dagster_dataops.foundation.hashing.code import code_digest
import proj.texts
path = Path(proj.texts.__file__)
EDIT
print(code_digest(proj.texts.clean))
"""


def test_imported_code_does_not_have_the_version_of_the_edited_file(
    tmp_path: Path,
) -> None:
    _write(tmp_path, _FILES)
    edit = "path.write_text(path.read_text().replace('[:LIMIT]', '[LIMIT:]'))"
    imported_before = _version(tmp_path, _EDITED.replace("EDIT", edit))
    assert imported_before != _version(tmp_path, _EDITED.replace("EDIT", ""))


@pytest.mark.parametrize("present", _FORMER)
def test_each_name_is_that_of_a_module_that_exists(present):
    assert importlib.util.find_spec(f"dagster_dataops.{present}") is not None


def test_a_moved_module_counts_under_its_former_name():
    present = "dagster_dataops.foundation.hashing.values"
    assert counted_module(present) == "dagster_dataops.hashing.values"
    assert counted_module("dagster_dataops.training.cooking") == "dagster_dataops.cooking"
    secrets = "dagster_dataops.operators.secrets"
    assert counted_module(f"{secrets}.hidden_errors") == "dagster_dataops.operators.hidden_errors"
    former = "dagster_dataops.operators.options.secret_texts"
    assert counted_module(f"{secrets}.secret_texts") == former
    for other in ("dagster_dataops.foundation.hashing_more", "dagster_dataops.data", "json"):
        assert counted_module(other) == other


def test_a_method_without_a_module_has_a_name():
    assert function_name(zoneinfo.ZoneInfo("UTC").__reduce__()[0]).startswith("None.")
