import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.lock import FolderLock
from dagster_dataops.errors import FolderLockedError, StorageError

_HOLD = """
import sys, time
from pathlib import Path
from dagster_dataops.checkpoints.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]), "the-first", 0)
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_holder_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, "run-one", 0)
    with pytest.raises(FolderLockedError) as caught:
        FolderLock(tmp_path, "run-two", 0)
    text = str(caught.value)
    assert "run run-one" in text
    assert f"process {os.getpid()} on {socket.gethostname()}" in text
    first.release()
    FolderLock(tmp_path, "run-two", 0).release()


def test_waiting_ends_when_the_lock_is_given_up(tmp_path: Path) -> None:
    import threading

    first = FolderLock(tmp_path, "one", 0)
    timer = threading.Timer(0.2, first.release)
    timer.start()
    FolderLock(tmp_path, "two", 30).release()
    timer.join()


def test_waiting_lasts_no_longer_than_asked(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, "one", 0)
    began = time.monotonic()
    with pytest.raises(FolderLockedError) as caught:
        FolderLock(tmp_path, "two", 0.2)
    assert caught.value.waited_seconds >= 0.2
    assert time.monotonic() - began < 30
    first.release()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(FolderLockedError, match="run the-first") as caught:
            FolderLock(tmp_path, "second", 0)
        assert str(process.pid) in str(caught.value)
        process.kill()
    FolderLock(tmp_path, "second", 5).release()


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path, "one", 0)
    lock.release()
    lock.release()


def test_a_holder_that_has_not_said_who_it_is_is_called_so(tmp_path: Path) -> None:
    first = FolderLock(tmp_path, "one", 0)
    first.path.write_bytes(b"")
    with pytest.raises(FolderLockedError, match="not yet said who it is"):
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
