"""The removal of checkpoints after a publication."""

import shutil
import threading
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.publish import cleanup
from dagster_dataops.checkpoints.publish.cleanup import delete_removed, remove_checkpoints
from dagster_dataops.errors import StorageError
from tests.execution.helpers import node
from tests.nodes import background, deleting


def _with_checkpoints(path: Path, count: int = 2, size: int = 100) -> None:
    for number in range(1, count + 1):
        folder = node(path).checkpoints / str(number)
        folder.mkdir(parents=True)
        (folder / "journal").write_bytes(b"x" * size)


def _entries(path: Path) -> list[str]:
    return sorted(entry.name for entry in node(path).path.iterdir())


@pytest.mark.parametrize(("count", "size"), [(2, 1 << 20), (21, 1)])
def test_checkpoints_are_moved_at_once_and_deleted_in_the_background(
    tmp_path: Path, count: int, size: int
) -> None:
    _with_checkpoints(tmp_path, count, size)
    deleting.latest_id = None
    remove_checkpoints(node(tmp_path))
    assert _entries(tmp_path) == [".removed"]
    assert (node(tmp_path).path / ".removed" / "2" / "journal").exists()
    delete_removed(node(tmp_path))
    deleting.finish()
    assert deleting.latest_id is not None
    assert _entries(tmp_path) == []


def test_few_small_checkpoints_are_deleted_without_a_thread(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    deleting.latest_id = None
    remove_checkpoints(node(tmp_path))
    delete_removed(node(tmp_path))
    assert _entries(tmp_path) == []
    assert deleting.latest_id is None


def test_an_empty_folder_of_removed_files_is_replaced(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    (node(tmp_path).path / ".removed").mkdir()
    remove_checkpoints(node(tmp_path))
    assert _entries(tmp_path) == [".removed"]
    assert (node(tmp_path).path / ".removed" / "2" / "journal").exists()


def test_a_node_without_checkpoints_stays_as_it_is(tmp_path: Path) -> None:
    node(tmp_path).path.mkdir()
    remove_checkpoints(node(tmp_path))
    delete_removed(node(tmp_path))
    deleting.finish()
    assert _entries(tmp_path) == []


def test_a_checkpoint_file_linked_to_the_result_is_unlinked_at_once(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    node(tmp_path).result.write_bytes(b"{}\n")
    (node(tmp_path).checkpoints / "1" / "segment").hardlink_to(node(tmp_path).result)
    remove_checkpoints(node(tmp_path))
    assert node(tmp_path).result.stat().st_nlink == 1


def test_checkpoints_that_a_killed_run_moved_are_deleted_by_the_next(tmp_path: Path) -> None:
    for _ in range(3):
        _with_checkpoints(tmp_path)
        remove_checkpoints(node(tmp_path))
    removed = node(tmp_path).path / ".removed"
    assert sorted(entry.name for entry in removed.iterdir()) == ["0", "1", "2", "3"]
    delete_removed(node(tmp_path))
    deleting.finish()
    assert _entries(tmp_path) == []


def test_a_folder_deleted_meanwhile_by_an_earlier_run_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletion continues after a run has released its lock: the next run may be at this point."""
    _with_checkpoints(tmp_path)
    (node(tmp_path).path / ".removed" / "of an earlier run").mkdir(parents=True)
    times = iter(range(10))

    def made_and_taken_away(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        if next(times) < 3:
            shutil.rmtree(folder)

    monkeypatch.setattr(cleanup, "make_folder", made_and_taken_away)
    remove_checkpoints(node(tmp_path))
    assert _entries(tmp_path) == [".removed"]
    assert next(times) == 4


def test_a_folder_deleted_while_it_is_found_to_exist_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_checkpoints(tmp_path)
    removed = node(tmp_path).path / ".removed"
    (removed / "of an earlier run").mkdir(parents=True)
    made, times = Path.mkdir, iter(range(10))

    def gone_meanwhile(folder: Path, *given: object, **named: object) -> None:
        if folder == removed and next(times) < 3:
            shutil.rmtree(removed, ignore_errors=True)
            raise FileExistsError(17, "File exists")
        made(folder, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", gone_meanwhile)
    remove_checkpoints(node(tmp_path))
    assert _entries(tmp_path) == [".removed"]


def test_a_file_in_place_of_the_folder_of_removed_files_is_an_error(tmp_path: Path) -> None:
    _with_checkpoints(tmp_path)
    (node(tmp_path).path / ".removed").write_text("mine")
    with pytest.raises(StorageError, match="published run: Not a directory"):
        remove_checkpoints(node(tmp_path))


def test_checkpoints_that_cannot_be_removed_are_an_error_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_checkpoints(tmp_path)

    def refuse(*given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StorageError, match=r"checkpoints.*remove the checkpoints.*denied"):
        remove_checkpoints(node(tmp_path))


def test_a_sync_does_not_wait_for_a_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(shutil, "rmtree", lambda *given, **named: release.wait(30))
    _with_checkpoints(tmp_path, size=1 << 20)
    remove_checkpoints(node(tmp_path))
    delete_removed(node(tmp_path))
    background.finish()
    assert deleting.native_id is not None
    release.set()
    deleting.finish()
