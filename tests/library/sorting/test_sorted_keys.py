import pickle
from pathlib import Path

import pytest
import xxhash

from dagster_dataops.library.sorting.sorted_keys import SortedKeys, write_sorted


@pytest.mark.parametrize("max_bytes", [10, 1 << 20])
def test_keys_are_written_once_in_order_and_found(tmp_path: Path, max_bytes: int) -> None:
    given = [xxhash.xxh3_64_digest(b"%d" % (number % 300)) for number in range(500)]
    path = tmp_path / "keys"
    write_sorted(iter(given), 8, path, max_bytes)
    assert [one.name for one in tmp_path.iterdir()] == ["keys"]
    keys = pickle.loads(pickle.dumps(SortedKeys(path, 8)))
    assert list(keys) == sorted(set(given))
    assert all(key in keys for key in given)
    assert b"\0" * 8 not in keys
    assert b"\xff" * 8 not in keys
    first = keys[0]
    assert list(keys.starting_with(first[:7])) == [first]
    assert list(keys.starting_with(b"")) == list(keys)


def test_no_keys_are_an_empty_file(tmp_path: Path) -> None:
    write_sorted(iter([]), 8, tmp_path / "keys", 100)
    keys = SortedKeys(tmp_path / "keys", 8)
    assert len(keys) == 0
    assert b"\0" * 8 not in keys
