"""Tests of a worker that waits for its next run while the code of the user changes."""

import importlib
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagster_dataops.execution.workers import protocol, worker_main
from dagster_dataops.execution.workers.loaded_modules import LoadedModules
from dagster_dataops.execution.workers.protocol import Kind
from dagster_dataops.execution.workers.signals import Termination

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
