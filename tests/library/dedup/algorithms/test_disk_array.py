from pathlib import Path

import pytest

from dagster_dataops.errors import StorageError
from dagster_dataops.library.dedup.algorithms.disk_array import DiskArray


def test_integers_are_zero_until_they_are_set(tmp_path: Path) -> None:
    values = DiskArray(tmp_path / "array", 1000).values
    values[999] = (1 << 64) - 1
    assert (sum(values[:999]), values[999], len(values)) == (0, (1 << 64) - 1, 1000)
    assert (tmp_path / "array").stat().st_blocks * 512 >= 8000  # reserved
    assert DiskArray(tmp_path / "empty", 0).values[0] == 0


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "array").write_bytes(b"x")
    with pytest.raises(StorageError, match="array"):
        DiskArray(tmp_path / "array", 1)
