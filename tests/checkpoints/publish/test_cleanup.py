import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.publish import cleanup
from dagster_dataops.checkpoints.publish.cleanup import Removal
from dagster_dataops.concurrency.background import background, deleting
from dagster_dataops.errors import StorageError
from tests.execution.helpers import node


def _with_checkpoints(path: Path, count: int = 2) -> None:
    for number in range(1, count + 1):
        folder = node(path).checkpoints / str(number)
        folder.mkdir(parents=True)
        (folder / "journal").write_bytes(b"x" * 100)


def _inodes_open() -> set[int]:
    """Return the inodes of all files that this process has open."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(os.fstat(int(entry.name)).st_ino)
    return found


def _entries(path: Path) -> list[str]:
    return sorted(entry.name for entry in node(path).path.iterdir())


@pytest.fixture
def much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all there is to delete count as much."""
    monkeypatch.setattr(cleanup, "_QUICKLY_DELETED", -1)


def test_what_is_deleted_in_no_time_is_deleted_where_it_is(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    node(tmp_path).result.write_bytes(b"old")
    taken = Removal(node(tmp_path))
    taken.spare(node(tmp_path).result)
    taken.remove_checkpoints()
    assert _entries(tmp_path) == [node(tmp_path).result.name]


@pytest.mark.usefixtures("much")
def test_checkpoints_are_out_of_the_way_at_once_and_deleted_later(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    taken = Removal(node(tmp_path))
    taken.remove_checkpoints()
    assert _entries(tmp_path) == [".removed"]
    assert (node(tmp_path).path / ".removed" / "0" / "2" / "journal").exists()
    taken.finish()
    deleting.finish()
    assert _entries(tmp_path) == []


def test_there_may_be_nothing_to_remove(tmp_path: Path) -> None:
    node(tmp_path).path.mkdir()
    taken = Removal(node(tmp_path))
    taken.remove_checkpoints()
    taken.spare(node(tmp_path).result)
    taken.finish()
    deleting.finish()
    assert _entries(tmp_path) == []


def test_what_is_spared_is_deleted_beside_the_work_once_another_file_took_its_place(
    tmp_path: Path,
) -> None:
    node(tmp_path).path.mkdir()
    result = node(tmp_path).result
    result.write_bytes(b"old")
    inode = result.stat().st_ino
    taken = Removal(node(tmp_path))
    taken.spare(result)
    draft = tmp_path / "draft"
    draft.write_bytes(b"new")
    draft.replace(result)
    assert _inodes_open() & {inode}
    assert _entries(tmp_path) == [result.name]
    taken.finish()
    deleting.finish()
    assert not _inodes_open() & {inode}
    assert result.read_bytes() == b"new"


@pytest.mark.usefixtures("much")
def test_what_a_killed_run_had_removed_gets_names_beside_and_goes_with_the_next(
    tmp_path: Path,
) -> None:
    for _ in range(3):
        _with_checkpoints(tmp_path)
        Removal(node(tmp_path)).remove_checkpoints()
    removed = node(tmp_path).path / ".removed"
    assert sorted(entry.name for entry in removed.iterdir()) == ["0", "1", "2"]
    Removal(node(tmp_path)).finish()
    deleting.finish()
    assert _entries(tmp_path) == []


@pytest.mark.parametrize("kind", ["absent", "link", "pipe", "unreadable"])
def test_what_cannot_be_opened_is_replaced_all_the_same(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node(tmp_path).path.mkdir()
    result = node(tmp_path).result
    if kind == "link":
        result.symlink_to(tmp_path)
    elif kind == "pipe":
        os.mkfifo(result)
    elif kind == "unreadable":
        result.write_bytes(b"old")

        def refuse(*given: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    taken = Removal(node(tmp_path))
    taken.spare(result)
    taken.finish()
    deleting.finish()


@pytest.mark.usefixtures("much")
def test_a_folder_that_an_earlier_deletion_takes_away_in_between_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting goes on after a run has given up its lock, so that the next may be at this point."""
    _with_checkpoints(tmp_path)
    times = iter(range(10))

    def made_and_taken_away(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        if next(times) < 3:
            shutil.rmtree(folder)

    monkeypatch.setattr(cleanup, "make_folder", made_and_taken_away)
    Removal(node(tmp_path)).remove_checkpoints()
    assert _entries(tmp_path) == [".removed"]
    assert next(times) == 4


@pytest.mark.usefixtures("much")
def test_checkpoints_that_cannot_be_removed_are_an_error_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_checkpoints(tmp_path)

    def refuse(*given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StorageError, match=r"checkpoints.*remove the checkpoints.*denied"):
        Removal(node(tmp_path)).remove_checkpoints()


def test_who_waits_for_a_sync_does_not_wait_for_what_is_being_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(cleanup, "_QUICKLY_DELETED", -1)
    monkeypatch.setattr(shutil, "rmtree", lambda *given, **named: release.wait(30))
    _with_checkpoints(tmp_path)
    taken = Removal(node(tmp_path))
    taken.remove_checkpoints()
    taken.finish()
    background.finish()
    assert deleting.native_id is not None
    release.set()
    deleting.finish()
