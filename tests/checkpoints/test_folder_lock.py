import errno
import fcntl
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from dagster_dataops.checkpoints import folder_lock
from dagster_dataops.errors import FolderLockedError, StorageError
from tests.faults.crashing import in_child
from tests.nodes import FolderLock


def test_a_second_holder_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, "run-one", 0)
    with pytest.raises(FolderLockedError) as caught:
        FolderLock(tmp_path, "run-two", 0)
    text = str(caught.value)
    assert "run run-one" in text
    assert f"process {os.getpid()} on {socket.gethostname()}" in text
    first.release()
    first.release()  # twice is safe
    FolderLock(tmp_path, "run-two", 0).release()


def test_waiting_ends_when_the_lock_is_given_up(tmp_path: Path) -> None:
    import threading

    first = FolderLock(tmp_path, "one", 0)
    timer = threading.Timer(0.2, first.release)
    timer.start()
    FolderLock(tmp_path, "two", 30).release()
    timer.join()


def test_a_holder_with_an_unwritable_name_or_none_yet_still_locks(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, "run-\udcff", 0)
    with pytest.raises(FolderLockedError, match=r"run run-\\udcff"):
        FolderLock(tmp_path, "two", 0)
    first.path.write_bytes(b"")
    with pytest.raises(FolderLockedError, match="not written its name yet"):
        FolderLock(tmp_path, "two", 0)
    first.release()


def test_a_file_in_place_of_the_folder_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError, match="cannot create the folder"):
            FolderLock(folder, "one", 0)


def test_a_full_disk_while_locking_gives_the_lock_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
        patch.setattr(os, "pwrite", full)
        FolderLock(tmp_path, "one", 0)
    FolderLock(tmp_path, "two", 0).release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_a_file_system_without_locks_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch, pytest.raises(StorageError) as caught:
        patch.setattr(fcntl, "flock", unsupported)
        FolderLock(tmp_path, "one", 0)
    text = str(caught.value)
    assert os.strerror(number) in text
    assert f"{tmp_path}: cannot lock the folder" in text
    assert ("use a root on another file system" in text) is (number != errno.EIO)
    FolderLock(tmp_path, "two", 0).release()


def test_a_lock_file_of_another_user_is_a_storage_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    FolderLock(tmp_path, "one", 0).release()
    (tmp_path / ".lock").chmod(0o444)

    def as_nobody() -> None:
        os.setuid(65534)
        with pytest.raises(StorageError, match="cannot open the lock file: Permission denied"):
            FolderLock(tmp_path, "two", 0)

    if os.getuid():
        pytest.skip("only root can become another user")
    for parent in tmp_path.parents[:-1]:
        if parent.stat().st_uid == 0 and parent.name.startswith(("pytest", "popen")):
            parent.chmod(0o755)
    assert in_child(as_nobody) == 0


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / ".lock").symlink_to(precious)
    with pytest.raises(StorageError, match="cannot open the lock file"):
        FolderLock(tmp_path / "node", "one", 0)
    assert precious.read_text() == "precious"


def test_a_folder_replaced_under_its_holder_is_detected(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "node", "one", 0)
    lock.check()
    shutil.rmtree(tmp_path / "node")
    with pytest.raises(StorageError, match="find the lock file"):
        lock.check()
    second = FolderLock(tmp_path / "node", "two", 0)
    with pytest.raises(StorageError, match="removed or replaced while this run was at work"):
        lock.check()
    second.check()
    second.release()
    lock.release()


def test_a_second_holder_beside_locks_that_do_not_hold_ends_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "lock_at_once", lambda _: True)  # as on another machine
    first = FolderLock(tmp_path, "one-with-a-long-name", 0)
    first.check()
    second = FolderLock(tmp_path, "two", 0)

    with pytest.raises(StorageError, match=r"run two .* has locked the folder too: locks .* mount"):
        first.check()

    second.check()
    first.release()
    second.release()


def test_a_forked_child_does_not_hold_the_lock_on(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, "one", 0)
    reader, writer = os.pipe()
    ready, say_ready = os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        os.write(say_ready, b"!")
        os.read(reader, 1)
        os._exit(0)
    os.read(ready, 1)
    with pytest.raises(FolderLockedError):
        FolderLock(tmp_path, "two", 0)
    first.release()
    FolderLock(tmp_path, "two", 0).release()
    for descriptor in (writer, reader, ready, say_ready):
        os.close(descriptor)
    assert os.waitpid(child, 0)[1] == 0


def test_children_of_a_forked_child_do_not_close_what_has_the_number_of_the_lock(
    tmp_path: Path,
) -> None:
    lock = FolderLock(tmp_path, "one", 0)
    number = lock.descriptor
    child = os.fork()
    if not child:
        with suppress(OSError):
            os.close(number)
        while (writer := os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)) < number:
            pass
        grandchild = os.fork()
        if not grandchild:
            os._exit(os.write(writer, b"!") != 1)
        os._exit(os.waitpid(grandchild, 0)[1] != 0)
    assert os.waitpid(child, 0)[1] == 0
    assert (tmp_path / "file").read_bytes() == b"!"
    lock.release()
