"""Tests of inputs on file systems that count whole seconds, or two: ext3, FAT, NFS, SMB servers.

A program changes the input twice within a second, with the same size. Nothing but the content tells
the versions apart. A run publishes the result of one of them, or raises an `InputError`.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dagster_dataops import JsonlDataset
from dagster_dataops.errors import DataOpsError, InputError
from tests.execution.helpers import lines, node, run
from tests.faults import test_changed_input as changed
from tests.faults.test_changed_input import HANDLES, KINDS
from tests.nodes import FileState, ResumePolicy

_SECOND: Final = 1_000_000_000
_TIMES: Final = ("st_mtime_ns", "st_ctime_ns", "st_atime_ns")


class _CoarseStatus:
    """A status whose times are cut to whole ticks, as such a file system keeps them."""

    def __init__(self, status: os.stat_result, tick: int) -> None:
        self._status = status
        self._tick = tick

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._status, name)
        if name in _TIMES:
            return found - found % self._tick
        if f"{name}_ns" in _TIMES:
            return getattr(self, f"{name}_ns") / _SECOND
        return found


@pytest.fixture(params=[1, 2])
def coarse(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all files have times of whole seconds, always the same one."""

    def wrapped(name: str) -> Callable[..., Any]:
        real = getattr(os, name)
        # All changes of a test are to fall in one tick, however slow the machine is.
        return lambda *args, **named: _CoarseStatus(real(*args, **named), 3600 * tick)

    tick = request.param * _SECOND
    for name in ("stat", "fstat", "lstat"):
        monkeypatch.setattr(os, name, wrapped(name))
    monkeypatch.setattr(
        "dagster_dataops.foundation.places.file_state._COARSE_NS", 4 * 3600 * _SECOND
    )


def _replace_in_place(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(lines(changed._rows("B")))


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_in_the_second_of_the_start_is_found(
    tmp_path: Path, kind: str, handle: str
) -> None:
    given = changed._Input(tmp_path, handle)
    changed._during[changed._STOP] = lambda: _replace_in_place(given.path)
    with pytest.raises(InputError, match="changed"):
        changed._attempt(tmp_path, kind, given)
    assert not node(tmp_path).result.exists()


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("kind", KINDS)
def test_an_input_that_stays_is_read(tmp_path: Path, kind: str) -> None:
    given = changed._Input(tmp_path, "of a file")
    changed._attempt(tmp_path, kind, given)
    assert changed._values(tmp_path) == {"A"}


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_between_two_attempts_is_found(tmp_path: Path, kind: str, handle: str) -> None:
    given = changed._Input(tmp_path, handle)
    changed._during[changed._STOP] = changed._stop
    with pytest.raises((KeyboardInterrupt, DataOpsError)):
        changed._attempt(tmp_path, kind, given)
    changed._during.clear()
    _replace_in_place(given.path)
    if handle == "of a file":
        changed._attempt(tmp_path, kind, given, "second")
        assert changed._values(tmp_path) == {"B"}
    else:
        with pytest.raises(InputError, match="was changed after its handle was made"):
            changed._attempt(tmp_path, kind, given, "second")


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("kind", KINDS)
def test_an_unfinished_run_goes_on_if_the_input_stays(tmp_path: Path, kind: str) -> None:
    given = changed._Input(tmp_path, "of a file")
    changed._during[changed._STOP] = changed._stop
    with pytest.raises((KeyboardInterrupt, DataOpsError)):
        changed._attempt(tmp_path, kind, given)
    changed._during.clear()
    report = changed._attempt(tmp_path, kind, given, "second")
    assert changed._values(tmp_path) == {"A"}
    assert (report.manifest.resumed > 0) == (kind not in {"whole", "stream"})


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("reuse", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_result_of_another_content_is_not_reused(
    tmp_path: Path, kind: str, reuse: bool
) -> None:
    given = changed._Input(tmp_path, "of a file")
    for content, run_name in (("A", "first"), ("B", "first"), ("B", "third")):
        if content == "B":
            _replace_in_place(given.path)
        report = run(
            changed._operator(kind),
            JsonlDataset.of_file(given.path),
            node(tmp_path),
            run=run_name,
            resume=ResumePolicy.AUTO,
            reuse_finished=reuse,
        )
        assert changed._values(tmp_path) == {content}
    assert report.reused == reuse


@pytest.mark.parametrize(
    ("changed_ns", "since_ns", "coarse_clock", "hides"),
    [
        (0, 10**18, False, False),  # an object: its tag tells
        (10**18, 10**18, True, True),
        (10**18, 10**18 + 59 * _SECOND, True, True),
        (10**18, 10**18 + 61 * _SECOND, True, False),
        (10**18 + 3600 * _SECOND, 10**18, True, True),  # the clock of a server is ahead
        (10**18 + 1, 10**18 + 2, False, True),  # within a tick of the kernel
        (10**18 + 1, 10**18 + _SECOND, False, False),
    ],
)
def test_a_state_hides_changes_that_follow_at_once(
    changed_ns: int, since_ns: int, coarse_clock: bool, hides: bool
) -> None:
    state = FileState(1, 2, 3, changed_ns)
    assert (state.coarse, state.hides_changes(since_ns)) == (coarse_clock, hides)
