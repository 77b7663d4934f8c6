"""The code of the user changes while a worker waits for its next run."""

import importlib
import multiprocessing
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagster_dataops.execution.workers.loaded_modules import LoadedModules
from tests.execution.engine import Kind, Termination, protocol, worker_main

_MODULE = "stale_code"


class _Unsignalled(Termination):
    def install(self) -> None:
        """Leave the handlers of the tests as they are."""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, LoadedModules]]:
    """Yield the file of an imported module, and the modules that the worker has imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(worker_main, "receive_streams", lambda _: -1)
    path, modules = tmp_path / f"{_MODULE}.py", LoadedModules()
    path.write_text("VALUE = 1\n")
    importlib.invalidate_caches()
    importlib.import_module(_MODULE)
    modules.take_note(time.time_ns())
    yield path, modules
    sys.modules.pop(_MODULE, None)


def _messages(modules: LoadedModules) -> list[bytes]:
    """Return what a worker answers to an order whose operator cannot be loaded."""
    parent, child = multiprocessing.Pipe()
    parent.send_bytes(b"cno_such_module\nwork\n.")
    parent.send_bytes(b"{}")
    assert not worker_main._serve_next(child, _Unsignalled(), modules)
    child.close()
    found = []
    try:
        while True:
            found.append(parent.recv_bytes())
    except EOFError:
        return found


def test_a_worker_whose_code_has_changed_says_so_and_loads_nothing(
    code: tuple[Path, LoadedModules],
) -> None:
    path, modules = code
    path.write_text("VALUE = 22\n")
    assert _messages(modules) == [protocol.pack(Kind.STALE)]


def test_a_worker_whose_code_stays_loads_the_operator(code: tuple[Path, LoadedModules]) -> None:
    (answer,) = _messages(code[1])
    assert answer[0] == Kind.UNABLE
    assert b"no_such_module" in answer


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadedModules]:
    """Yield the modules that a test imports from its own folder; forget them afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield LoadedModules()
    for name in ("loaded_one", "loaded_two"):
        sys.modules.pop(name, None)


def _imported(path: Path, code: str = "VALUE = 1") -> Path:
    path.write_text(code)
    importlib.invalidate_caches()
    importlib.import_module(path.stem)
    return path


def test_a_module_whose_file_stays_as_it_is_has_not_changed(
    tmp_path: Path, modules: LoadedModules
) -> None:
    _imported(tmp_path / "loaded_one.py")
    modules.take_note(time.time_ns())
    assert not modules.changed()


@pytest.mark.parametrize("how", ["edited", "replaced", "removed"])
def test_a_changed_file_is_detected(tmp_path: Path, modules: LoadedModules, how: str) -> None:
    _imported(tmp_path / "loaded_one.py")
    path = _imported(tmp_path / "loaded_two.py")
    modules.take_note(time.time_ns())
    match how:
        case "edited":
            path.write_text("VALUE = 22")
        case "replaced":
            (tmp_path / "new").write_text("VALUE = 1")
            (tmp_path / "new").replace(path)
        case "removed":
            path.unlink()
    assert modules.changed()


def test_a_file_that_changed_while_it_was_imported_counts_as_changed(
    tmp_path: Path, modules: LoadedModules
) -> None:
    _imported(tmp_path / "loaded_one.py")
    modules.take_note(began=(tmp_path / "loaded_one.py").stat().st_mtime_ns - 1)
    assert modules.changed()


def test_modules_of_before_and_modules_without_a_file_do_not_count(
    tmp_path: Path, modules: LoadedModules, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _imported(tmp_path / "loaded_one.py")
    later = LoadedModules()
    by_hand = types.ModuleType("loaded_by_hand")
    by_hand.__file__ = "no/such/file"
    monkeypatch.setitem(sys.modules, "loaded_by_hand", by_hand)
    later.take_note(time.time_ns())
    path.write_text("VALUE = 22")
    assert not later.changed()


def test_modules_that_are_imported_when_they_are_used_are_not_imported(
    tmp_path: Path, modules: LoadedModules
) -> None:
    path = tmp_path / "loaded_one.py"
    path.write_text("raise ZeroDivisionError")
    spec = importlib.util.find_spec("loaded_one")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = sys.modules["loaded_one"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lazy)
    modules.take_note(time.time_ns())
    assert not modules.changed()
