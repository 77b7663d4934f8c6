"""Tests of dagster_dataops.concurrency.file_lock."""

import fcntl
import os
from pathlib import Path

import pytest

from dagster_dataops.concurrency.file_lock import locked


def is_free(path: Path) -> bool:
    """Return whether another opening of the file gets its lock."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_the_lock_is_held_in_the_block_and_given_up_after_an_error(tmp_path: Path):
    path = tmp_path / "file"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    with pytest.raises(KeyError), locked(descriptor):
        assert not is_free(path)
        raise KeyError
    assert is_free(path)
    os.close(descriptor)
