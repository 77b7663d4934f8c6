"""`ExternalSort`: sort more entries than memory holds."""

import heapq
import marshal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from dagster_dataops.datasets.durable_files import storage

Entry: TypeAlias = tuple[Any, int, bytes]
"""The sort key, the number of the entry in insertion order, and its data."""

_ENTRY_BYTES: Final = 200  # of an entry in memory, besides key and data
_MOST_RUNS: Final = 64  # files that are merged at a time
_LENGTH: Final = 8


class ExternalSort:
    """Sorts entries by key; equal keys stay in insertion order, also with ``reverse``.

    Keys are tuples of texts, numbers, bools and bytes that can be compared with each other.
    What exceeds about ``max_bytes`` is in files in the folder whose names begin with ``name``.
    """

    def __init__(
        self, folder: Path, max_bytes: int, *, reverse: bool = False, name: str = "run"
    ) -> None:
        self._folder, self._max_bytes, self._reverse = folder, max_bytes, reverse
        self._name = name
        self._entries: list[Entry] = []
        self._bytes = self._added = 0
        self._runs: list[Path] = []
        self._numbers = count()

    def add(self, key: tuple[Any, ...], data: bytes) -> None:
        """Add an entry.

        Raises:
            TypeError: Keys cannot be compared.
        """
        self._added += 1
        self._entries.append((key, -self._added if self._reverse else self._added, data))
        self._bytes += _ENTRY_BYTES + len(data) + sum(map(sys.getsizeof, key))
        if self._bytes >= self._max_bytes:
            self._spill()

    def __iter__(self) -> Iterator[Entry]:
        """Yield the sorted entries; again from the start on each call."""
        self._entries.sort(reverse=self._reverse)
        runs = [_read(path) for path in self._runs]
        return heapq.merge(*runs, self._entries, reverse=self._reverse)

    def _spill(self) -> None:
        self._entries.sort(reverse=self._reverse)
        self._runs.append(self._write(iter(self._entries)))
        self._entries = []
        self._bytes = 0
        if len(self._runs) >= _MOST_RUNS:
            merged = self._write(heapq.merge(*map(_read, self._runs), reverse=self._reverse))
            for path in self._runs:
                path.unlink()
            self._runs = [merged]

    def _write(self, entries: Iterator[Entry]) -> Path:
        path = self._folder / f"{self._name}-{next(self._numbers):06d}"
        with storage(path, "write"), path.open("wb", buffering=1 << 18) as file:
            for entry in entries:
                packed = marshal.dumps(entry)
                file.write(len(packed).to_bytes(_LENGTH, "little") + packed)
        return path


def _read(path: Path) -> Iterator[Entry]:
    with storage(path, "read"), path.open("rb", buffering=1 << 16) as file:
        yield from _entries(file)


def _entries(file: BinaryIO) -> Iterator[Entry]:
    while length := file.read(_LENGTH):
        yield marshal.loads(file.read(int.from_bytes(length, "little")))  # noqa: S302 - our own file
