from pathlib import Path

import pytest

from dagster_dataops.errors import StorageError
from dagster_dataops.library.dedup.algorithms.disk_array import disk_array


def test_integers_are_zero_until_they_are_set(tmp_path: Path) -> None:
    values = disk_array(tmp_path / "array", 1000)
    values[999] = (1 << 64) - 1
    assert (sum(values[:999]), values[999], len(values)) == (0, (1 << 64) - 1, 1000)
    assert (tmp_path / "array").stat().st_blocks * 512 >= 8000  # reserved
    assert disk_array(tmp_path / "empty", 0)[0] == 0


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "array").write_bytes(b"x")
    with pytest.raises(StorageError, match="array"):
        disk_array(tmp_path / "array", 1)
