"""Tests of failing disks: a clear error, settled records are kept, the next attempt resumes."""

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from dagster_dataops import JsonlDataset, Operational, RunReport
from dagster_dataops.data import data_register
from dagster_dataops.errors import InputError, StorageError
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.foundation.concurrency.fork_safety import may_fork
from tests.execution.helpers import (
    MODES,
    SMALL,
    cut_by,
    error_rows,
    lines,
    look_at_every_tick,
    node,
    run,
    turn_around,
    write_input,
)
from tests.faults.crashing import wait_until
from tests.faults.failing import failing, small_disk
from tests.nodes import FolderLock, ResumePolicy, existing

_COUNT = 30
_RECORDS = [{"n": n, "text": "x" * 300} for n in range(_COUNT)]
_FAILING = [n for n in range(_COUNT) if n % 11 == 5]
_EXPECTED = lines(
    {"n": n, "text": "x" * 300, "more": "y" * 300} for n in range(_COUNT) if n not in _FAILING
)


class _Hooks:
    """The behaviour of the operators besides their work."""

    def __init__(self) -> None:
        self.calls = Path()
        self.at: dict[int, Callable[[], object]] = {}
        self.seconds = 0.0

    def call(self, number: int) -> None:
        descriptor = os.open(self.calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, b"%d\n" % number)
        os.close(descriptor)
        self.at.get(number, lambda: None)()
        time.sleep(self.seconds)

    def called(self) -> list[int]:
        return [int(line) for line in self.calls.read_text().split()] if self.calls.exists() else []


_HOOKS: Annotated[_Hooks, Operational] = _Hooks()  # no part of the code version


def _act(record: dict[str, Any]) -> object:
    _HOOKS.call(record["n"])
    if record["n"] in _FAILING:
        raise ValueError(record["n"])
    return {**record, "more": "y" * 300}


@data_register("data.failing_disk", _max_workers=2)
def work(record):
    return _act(record)


@data_register("data.failing_disk", _max_workers=2)
async def work_async(record):
    return _act(record)


class _Runs:
    """Attempts at one node, in one mode."""

    def __init__(self, home: Path, mode: str, root: Path | None = None) -> None:
        self.folder = node(root or home)
        self.input = home / "input.jsonl"
        self.dataset = write_input(self.input, _RECORDS)
        self._mode = mode
        _HOOKS.calls, _HOOKS.at, _HOOKS.seconds = home / "calls", {}, 0.002

    @property
    def operator(self) -> Any:
        return work_async() if self._mode == "async" else work(_concurrency_mode=self._mode)

    def attempt(self, run_name: str, **context: Any) -> RunReport:
        wait_until(may_fork, 10, "workers can be forked, with what the hooks are to do")
        dataset = JsonlDataset.of_file(self.input)
        context = {"resume": ResumePolicy.AUTO, "flush_seconds": 0.0, **context}
        return run(self.operator, dataset, self.folder, run=run_name, **context)

    def settled(self) -> set[int]:
        """Return the records that the checkpoints on disk have settled."""
        content = lines(_RECORDS)
        found: set[int] = set()
        for checkpoint in existing(self.folder.checkpoints):
            for span, _, _ in checkpoint.table.ordered():
                end = span.start + span.length
                found |= set(range(content[: span.start].count(b"\n"), content[:end].count(b"\n")))
        return found

    def check_the_next_attempt(self, **context: Any) -> set[int]:
        """Finish without the fault; return the records that were settled before."""
        settled = self.settled()
        _HOOKS.calls, _HOOKS.at = _HOOKS.calls.with_name("calls-again"), {}
        report = self.attempt("second", **context)
        if report.reused:  # only renames were left
            settled = set(range(_COUNT))
        assert self.folder.result.read_bytes() == _EXPECTED
        assert [row["index"] for row in error_rows(self.folder)] == _FAILING
        assert sorted(_HOOKS.called()) == sorted(set(range(_COUNT)) - settled)
        assert not self.folder.checkpoints.exists()
        return settled


@pytest.fixture(autouse=True)
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_by(monkeypatch, SMALL)


_WHILE_SETTLING = {
    "no room in a segment": ("pwrite", ".jsonl", errno.ENOSPC, 2),
    "a segment cannot be written": ("pwrite", ".jsonl", errno.EIO, 2),
    "no room in the journal": ("write", "journal", errno.ENOSPC, 3),
    "the journal cannot be written": ("write", "journal", errno.EIO, 3),
    "a segment cannot be synced": ("fdatasync", ".jsonl", errno.EIO, 0),
    "the journal cannot be synced": ("fdatasync", "journal", errno.EDQUOT, 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", _WHILE_SETTLING)
def test_a_disk_that_refuses_while_records_settle_costs_no_settled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, mode: str
) -> None:
    look_at_every_tick(monkeypatch)
    runs = _Runs(tmp_path, mode)
    if "synced" in fault:
        _HOOKS.seconds = 0.02  # long enough for a sync beside the work to be seen to have failed
    monkeypatch.setattr(os, "fdatasync", lambda _: None)  # at once, if it is not to fail
    call, names, number, spared = _WHILE_SETTLING[fault]
    with failing(call, names, number, spared), pytest.raises(StorageError) as caught:
        runs.attempt("first")
    assert os.strerror(number) in str(caught.value)
    assert str(runs.folder.checkpoints) in str(caught.value)
    assert not runs.folder.result.exists()
    assert runs.check_the_next_attempt()


_WHILE_PUBLISHING = {
    "no room for the drafts": ("open", "_results.jsonl.draft", errno.ENOSPC),
    "no inode for the checkpoint": ("open", "journal", errno.ENOSPC),
    "no inode for the error file": ("open", "_error.jsonl.draft", errno.ENOSPC),
    "a draft cannot be synced": ("fsync", "_results.jsonl.draft", errno.EIO),
    "the manifest cannot be written": ("open", "_results.jsonl.json.draft", errno.ENOSPC),
    "the folder is read-only by now": ("replace", ".draft", errno.EROFS),
    "a segment cannot be read back": ("pread", "-00001.jsonl", errno.EIO),
    "no inode for the lock": ("open", ".lock", errno.ENOSPC),
    "no room for the lock": ("pwrite", ".lock", errno.ENOSPC),
}


@pytest.mark.parametrize("mode", ["single", "process"])
@pytest.mark.parametrize("fault", _WHILE_PUBLISHING)
def test_a_disk_that_refuses_to_publish_keeps_the_previous_result(
    tmp_path: Path, fault: str, mode: str
) -> None:
    runs = _Runs(tmp_path, mode)
    before = runs.folder
    run(turn_around(), write_input(tmp_path / "old.jsonl", [{"n": 1}]), before, run="old")
    previous = before.result.read_bytes()
    call, names, number = _WHILE_PUBLISHING[fault]
    with failing(call, names, number), pytest.raises(StorageError, match=os.strerror(number)):
        runs.attempt("first")
    assert before.result.read_bytes() == previous
    settled = runs.check_the_next_attempt()
    early = "lock" in fault or "checkpoint" in fault
    assert len(settled) == (0 if early else _COUNT)


_AFTER_THE_LAST_WORD = {
    "the result cannot be put in place": ("replace", "_results.jsonl.draft", errno.EROFS),
    "the checkpoints cannot be removed": ("rename", "checkpoints", errno.EIO),
}


@pytest.mark.parametrize("earlier", [{"first"}, set()], ids=["a retry", "a new run"])
@pytest.mark.parametrize("fault", _AFTER_THE_LAST_WORD)
def test_a_publication_interrupted_by_the_disk_is_finished_without_a_call(
    tmp_path: Path, fault: str, earlier: set[str]
) -> None:
    runs = _Runs(tmp_path, "single")
    call, names, number = _AFTER_THE_LAST_WORD[fault]
    with failing(call, names, number), pytest.raises((StorageError, OSError)):
        runs.attempt("first")
    runs.check_the_next_attempt(earlier_runs=frozenset(earlier))


@pytest.mark.slow
def test_a_sync_that_fails_at_the_very_end_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux reports lost pages once: a second sync of the draft, the same file, would succeed."""
    look_at_every_tick(monkeypatch)
    runs = _Runs(tmp_path, "single")

    def slow_failure(descriptor: int) -> None:
        time.sleep(0.5)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", slow_failure)
    with pytest.raises(StorageError, match="Input/output error"):
        runs.attempt("first")
    assert not runs.folder.result.exists()


def _refusal_of(runs: _Runs) -> str | None:
    """Return the error of an attempt; ``None`` if the disk has enough room."""
    try:
        runs.attempt("first")
    except StorageError as error:
        return str(error)
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_a_disk_that_is_full_at_any_time_costs_no_settled_record(tmp_path: Path, mode: str) -> None:
    """A little more room each time: for the lock, a segment, more of it, the journal, a draft."""
    refused = 0
    for number, pages in enumerate([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14]):
        home = tmp_path / f"{number}"
        home.mkdir()
        with small_disk(home / "disk", f"size={pages * 4}k") as disk:
            runs = _Runs(home, mode, disk.path)
            if (found := _refusal_of(runs)) is not None:
                refused += 1
                assert "No space left on device" in found
                assert str(disk.path) in found
                disk.change("size=4m")
                runs.check_the_next_attempt(earlier_runs=frozenset({"first"}))
    assert refused >= 5


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_disk_without_inodes_costs_no_settled_record(tmp_path: Path, mode: str) -> None:
    refused = 0
    for inodes in range(1, 12):
        home = tmp_path / f"{inodes}"
        home.mkdir()
        with small_disk(home / "disk", f"size=4m,nr_inodes={inodes}") as disk:
            runs = _Runs(home, mode, disk.path)
            if (found := _refusal_of(runs)) is not None:
                refused += 1
                assert "No space left on device" in found
                disk.change("nr_inodes=100")
                runs.check_the_next_attempt(earlier_runs=frozenset({"first"}))
    assert refused >= 6


def test_a_read_only_root_is_a_storage_error_that_names_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=4m") as disk:
        runs = _Runs(tmp_path, "single", disk.path)
        disk.change("ro")
        with pytest.raises(StorageError, match="Read-only file system") as caught:
            runs.attempt("first")
        assert str(disk.path) in str(caught.value)
        disk.change("rw")
        runs.check_the_next_attempt()


@pytest.mark.parametrize("mode", MODES)
def test_a_folder_removed_under_the_run_is_a_storage_error(tmp_path: Path, mode: str) -> None:
    runs = _Runs(tmp_path, mode)
    _HOOKS.at[12] = lambda: shutil.rmtree(runs.folder.path)
    with pytest.raises(StorageError, match=r"No such file|removed or replaced"):
        runs.attempt("first")
    assert not runs.folder.result.exists()
    assert runs.check_the_next_attempt() == set()


def test_a_run_whose_folder_was_replaced_publishes_nothing_into_the_new_one(tmp_path: Path) -> None:
    runs = _Runs(tmp_path, "single")

    def replace() -> None:
        shutil.rmtree(runs.folder.path)
        locks.append(FolderLock(runs.folder.path, "other", 0))
        (runs.folder.checkpoints / "1").mkdir(parents=True)

    locks: list[FolderLock] = []
    _HOOKS.at[12] = lambda: None if locks else replace()
    try:
        with pytest.raises(StorageError, match="removed or replaced|No such file"):
            runs.attempt("first")
        assert not runs.folder.result.exists()
    finally:
        locks[0].release()


def test_a_disk_that_corrupts_data_is_an_error_not_endless_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _Runs(tmp_path, "single")
    real = os.pwrite

    def garble(descriptor: int, data: Any, offset: int) -> int:
        return real(descriptor, bytes(len(data)), offset)

    def give_up() -> None:
        if len(_HOOKS.called()) > 5 * _COUNT:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "pwrite", garble)
    _HOOKS.at[12] = give_up
    with pytest.raises((StorageError, KeyboardInterrupt)) as caught:
        runs.attempt("first")
    assert caught.type is StorageError


_CHANGES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 2 + 100),
    "emptied": lambda path: os.truncate(path, 0),
    "replaced": lambda path: (path.unlink(), path.write_bytes(lines(reversed(_RECORDS)))),
    "grown": lambda path: path.write_bytes(path.read_bytes() + b'{"n":99}\n'),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", _CHANGES)
def test_an_input_changed_under_the_run_publishes_nothing(
    tmp_path: Path, change: str, mode: str
) -> None:
    runs = _Runs(tmp_path, mode)
    whole = runs.input.read_bytes()
    _HOOKS.at[12] = lambda: _CHANGES[change](runs.input)
    with pytest.raises(InputError) as caught:
        runs.attempt("first")
    assert str(runs.input) in str(caught.value)
    assert not runs.folder.result.exists()
    runs.input.unlink(missing_ok=True)
    runs.input.write_bytes(whole)
    _HOOKS.at = {}
    runs.attempt("second")
    assert runs.folder.result.read_bytes() == _EXPECTED
    assert [row["index"] for row in error_rows(runs.folder)] == _FAILING


@pytest.mark.parametrize("mode", MODES)
def test_an_input_that_cannot_be_read_is_an_input_error(tmp_path: Path, mode: str) -> None:
    runs = _Runs(tmp_path, mode)
    with failing("pread", "input.jsonl", errno.EIO), pytest.raises(InputError) as caught:
        runs.attempt("first")
    assert str(caught.value) == f"Input {runs.input}: cannot be read: Input/output error"
    runs.check_the_next_attempt()


@pytest.mark.parametrize("mode", ["single", "process"])
def test_an_input_that_cannot_be_read_any_more_is_an_input_error(tmp_path: Path, mode: str) -> None:
    runs = _Runs(tmp_path, mode)
    in_workers = mode == "process"
    spared = 0 if in_workers else 3
    refused = failing("pread", "input.jsonl", errno.EIO, spared, in_workers=in_workers)
    with refused, pytest.raises((InputError, StorageError), match="Input/output error"):
        runs.attempt("first")
    assert error_rows(runs.folder) == []  # no record caused the error
    runs.check_the_next_attempt()


def test_a_dataset_operator_on_a_full_disk_keeps_its_previous_result(tmp_path: Path) -> None:
    old = write_input(tmp_path / "old.jsonl", [{"n": 1}])
    new = write_input(tmp_path / "new.jsonl", _RECORDS)
    with small_disk(tmp_path / "disk", "size=4m") as disk:
        run(turn_around(), old, node(disk.path))
        previous = node(disk.path).result.read_bytes()
        for pages in range(3, 7):
            disk.change(f"size={pages * 4}k")
            with pytest.raises(StorageError, match="No space left on device"):
                run(turn_around(), new, node(disk.path))
            assert node(disk.path).result.read_bytes() == previous
        disk.change("size=4m")
        run(turn_around(), new, node(disk.path))
        assert node(disk.path).result.read_bytes().count(b"\n") == _COUNT


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_sync_before_composition_gives_no_result(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that the disk may have lost must not be used, even if it can be read now."""
    runs = _Runs(tmp_path, mode)
    complete = threading.Event()
    check_complete = CheckpointSink.check_complete
    real = os.fdatasync

    def checked(sink: CheckpointSink) -> None:
        complete.set()
        check_complete(sink)

    def refuse(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name.startswith("segment-"):
            assert complete.wait(60)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="Input/output error"):
        look_at_every_tick(patch)
        patch.setattr(CheckpointSink, "check_complete", checked)
        patch.setattr(os, "fdatasync", refuse)
        runs.attempt("first")
    assert not runs.folder.result.exists()
    assert runs.check_the_next_attempt() == set(range(_COUNT))


@pytest.mark.parametrize("mode", MODES)
def test_a_run_whose_lock_was_replaced_publishes_nothing(tmp_path: Path, mode: str) -> None:
    """Another run may hold the new one by now."""
    runs = _Runs(tmp_path, mode)
    lock = runs.folder.path / ".lock"
    _HOOKS.at[12] = lambda: (lock.unlink(), lock.touch())
    with pytest.raises(StorageError, match="removed or replaced"):
        runs.attempt("first")
    assert not runs.folder.result.exists()
    runs.check_the_next_attempt()
