"""Tests of dagster_dataops.foundation.concurrency.file_lock."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from dagster_dataops.foundation.concurrency.file_lock import lock_at_once, locked, unused


def test_the_lock_is_held_in_the_block_and_given_up_after_an_error(tmp_path: Path):
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    with pytest.raises(KeyError), locked(descriptor):
        with unused(path) as free:
            assert not free
        raise KeyError
    with unused(path) as free:
        assert free
    os.close(descriptor)


def test_a_lock_at_once_is_refused_while_another_opening_has_it(tmp_path: Path):
    first, second = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    assert lock_at_once(first)
    assert not lock_at_once(second)
    os.close(first)
    assert lock_at_once(second)
    os.close(second)


def test_nothing_is_unused_on_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with unused(tmp_path) as free:
        assert not free
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="locks"):
        lock_at_once(descriptor)
    os.close(descriptor)


def test_a_link_is_not_followed(tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(OSError, match="link"), unused(link):
        pytest.fail("it was opened")
