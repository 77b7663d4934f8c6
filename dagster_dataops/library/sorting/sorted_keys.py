"""Sorted keys of one length in a file: written with bounded memory, and searched."""

import mmap
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.sorting.spill_lists import SpillLists

_PARTITIONS: Final = 256


def write_sorted(keys: Iterable[bytes], length: int, path: Path, max_bytes: int) -> None:
    """Write keys to a file in sorted order, each once.

    Args:
        keys: Keys of ``length`` bytes, evenly distributed.
        length: Their length in bytes.
        path: The file.
        max_bytes: The approximate memory limit, for up to some hundred times as many bytes.
    """
    with TemporaryDirectory(dir=path.parent, prefix="sorting-") as folder:
        lists = SpillLists(Path(folder), _PARTITIONS, struct.Struct(f"{length}s"), max_bytes // 2)
        for key in keys:
            lists.add(key[0], key)
        with storage(path, "write"), path.open("wb") as file:
            for number in range(_PARTITIONS):
                file.write(b"".join(sorted({key for (key,) in lists.read(number)})))
                lists.drop(number)


def mapped_file(path: Path) -> mmap.mmap | bytes:
    """Return the content of a file, which is read from disk as needed."""
    with storage(path, "read"), path.open("rb") as file:
        if not path.stat().st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class SortedKeys:
    """Keys of one length in bytes in a file that `write_sorted` wrote.

    They are read from disk as needed. Pickled as the path.

    Raises:
        StorageError: The file cannot be read, or was cut short.
    """

    def __init__(self, path: Path, length: int) -> None:
        self._path, self._length = path, length
        self._bytes = mapped_file(path)
        if len(self._bytes) % length:
            reason = f"it is damaged: its size is no multiple of {length} bytes; build it again"
            raise StorageError(str(path), "read the keys", reason)

    def __len__(self) -> int:
        return len(self._bytes) // self._length

    def __getitem__(self, number: int) -> bytes:
        if number >= len(self):
            raise IndexError(number)
        return self._bytes[number * self._length : (number + 1) * self._length]

    def __contains__(self, key: bytes) -> bool:
        place = bisect_left(self, key)
        return place < len(self) and self[place] == key

    def starting_with(self, prefix: bytes) -> Iterator[bytes]:
        """Yield the keys that start with ``prefix``, in order."""
        for number in range(bisect_left(self, prefix), len(self)):
            key = self[number]
            if not key.startswith(prefix):
                return
            yield key

    @override
    def __reduce__(self) -> Any:
        return SortedKeys, (self._path, self._length)
