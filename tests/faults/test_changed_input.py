"""Tests of inputs that change before, between and during the attempts to process them.

A run either publishes the result of one content of its input, or raises an `InputError`. It never
publishes a mixture of two contents, and never the result of a handle's old content.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from dagster_dataops import DataPipelineBuilder, JsonlDataset, RunReport, load_result
from dagster_dataops.data import data_register
from dagster_dataops.errors import DataOpsError, InputError
from tests.execution.helpers import MODES, lines, node, run
from tests.faults.crashing import wait_until
from tests.nodes import ResumePolicy, write_result

_COUNT: Final = 120
_STOP: Final = 60
_during: dict[int, Callable[[], object]] = {}  # by record: the action when it is processed


def _rows(value: str) -> list[dict[str, Any]]:
    return [{"n": n, "v": value} for n in range(_COUNT)]


def _work(record: dict[str, Any]) -> dict[str, Any]:
    _during.get(record["n"], int)()
    return record


@data_register("data.changed_input")
def single(record):
    return _work(record)


@data_register("data.changed_input")
async def in_loop(record):
    return _work(record)


@data_register("data.changed_input", rewrite_func="forward_batch_input")
def whole(records: list) -> Any:
    return [_work(record) for record in records]


class Streamed(data_register.new_group("changed_input_streams")):
    def stream(self, records: DataPipelineBuilder) -> DataPipelineBuilder:
        return records.map(_work)


class Selected(data_register.new_group("changed_input_selections")):
    def sketch(self, record):
        return _work(record)["n"]

    def keep(self, sketches):
        return [True for _ in sketches]


def _operator(kind: str) -> Any:
    others = {"whole": whole, "stream": Streamed, "selection": Selected}
    if kind == "selection":
        return Selected(_concurrency_mode="single")
    if kind in others:
        return others[kind]()
    made = in_loop if kind == "async" else single
    return made(_concurrency_mode=kind, _ignore_errors=False, _max_workers=1)


KINDS: Final = ("single", "thread", "async", "whole", "stream", "selection")


def _in_place(path: Path) -> None:
    content = path.read_bytes().replace(b'"A"', b'"B"')
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, content)
    os.close(descriptor)


def _replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b'"A"', b'"B"'))
    other.replace(path)


def _time_kept(change: Callable[[Path], None]) -> Callable[[Path], None]:
    def changed(path: Path) -> None:
        status = path.stat()
        change(path)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    return changed


CHANGES: Final[dict[str, Callable[[Path], None]]] = {
    "edited in place": _in_place,
    "edited in place, time restored": _time_kept(_in_place),
    "replaced": _replaced,
    "replaced, time restored": _time_kept(_replaced),
}
HANDLES: Final = ("of a file", "of a result", "of a result, made anew")


def _change(change: str, path: Path) -> None:
    """Change a file after the clock of its file system has advanced since its last change."""
    clock = path.with_name("clock")

    def has_moved_on() -> bool:
        clock.write_bytes(b"tick")
        return clock.stat().st_ctime_ns > newest

    newest = max(one.stat().st_ctime_ns for one in path.parent.iterdir())
    wait_until(has_moved_on, 60, "the clock of the file system moves on")
    CHANGES[change](path)


class _Input:
    """An input of rows ``A``, and the handles of it."""

    def __init__(self, folder: Path, handle: str) -> None:
        _during.clear()
        self._folder = node(folder / "source")
        self.handle = handle
        if handle == "of a file":
            self.path = folder / "input.jsonl"
            self.path.write_bytes(lines(_rows("A")))
            self._first = JsonlDataset.of_file(self.path)
        else:
            self._first = write_result(self._folder, _rows("A"), "source")
            self.path = self._first.path

    def dataset(self) -> JsonlDataset:
        return load_result(self._folder) if self.handle.endswith("anew") else self._first


def _stop() -> None:
    raise KeyboardInterrupt


def _values(folder: Path) -> set[str]:
    result = node(folder).result
    return {orjson.loads(line)["v"] for line in result.read_bytes().splitlines()}


def _attempt(folder: Path, kind: str, given: _Input, name: str = "first") -> RunReport:
    return run(_operator(kind), given.dataset(), node(folder), run=name, resume=ResumePolicy.AUTO)


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_input_changed_between_two_attempts_is_not_mixed(
    tmp_path: Path, change: str, kind: str, handle: str
) -> None:
    given = _Input(tmp_path, handle)
    _during[_STOP] = _stop
    with pytest.raises((KeyboardInterrupt, DataOpsError)):
        _attempt(tmp_path, kind, given)
    _during.clear()
    _change(change, given.path)
    _check_refused_or_read(tmp_path, kind, given, change)


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_input_changed_while_it_is_processed_publishes_no_mixture(
    tmp_path: Path, change: str, kind: str, handle: str
) -> None:
    given = _Input(tmp_path, handle)
    _during[_STOP] = lambda: _change(change, given.path)
    with pytest.raises(InputError, match="changed") as caught:
        _attempt(tmp_path, kind, given)
    assert str(given.path) in str(caught.value)
    assert not node(tmp_path).result.exists()


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_input_changed_after_its_handle_was_made_is_refused_or_read_as_it_is(
    tmp_path: Path, change: str, kind: str, handle: str
) -> None:
    given = _Input(tmp_path, handle)
    _change(change, given.path)
    _check_refused_or_read(tmp_path, kind, given, change)


def _check_refused_or_read(folder: Path, kind: str, given: _Input, change: str) -> None:
    """Check that a handle of another content is refused; any other reads the present content."""
    anew = given.handle.endswith("anew")
    if given.handle == "of a file" or (anew and "time restored" not in change):
        _attempt(folder, kind, given, "second")
        assert _values(folder) == {"B"}
        return
    with pytest.raises(InputError, match="was changed after its handle was made") as caught:
        _attempt(folder, kind, given, "second")
    assert str(given.path) in str(caught.value)
    assert not node(folder).result.exists()


def _touched(path: Path) -> None:
    path.chmod(0o600)
    path.with_name("another name").hardlink_to(path)


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("mode", MODES)
def test_new_rights_and_links_change_no_input(tmp_path: Path, mode: str, handle: str) -> None:
    given = _Input(tmp_path, handle)
    _during[_STOP] = lambda: _touched(given.path)
    report = _attempt(tmp_path, mode, given)
    assert node(tmp_path).result.read_bytes() == lines(_rows("A"))
    assert given.path.stat().st_nlink == 2
    _during.clear()
    given.path.chmod(0o644)
    again = _attempt(tmp_path / "again", mode, given)
    assert again.dataset.fingerprint == report.dataset.fingerprint
