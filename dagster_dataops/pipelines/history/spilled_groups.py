"""`SpilledGroups`: entries of two versions, grouped by a key, on disk if they are many."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, NamedTuple, Self

_GROUPS: Final = 128
_IN_MEMORY: Final = 64 << 10  # bytes of a file before it is on disk
_ENTRY: Final = struct.Struct("<QQ")


class EqualKeys(NamedTuple):
    """The entries with one key.

    The values are in the order in which they were added.
    """

    before: list[int]
    after: list[int]


class SpilledGroups:
    """Entries of two versions by their keys. Memory holds one of 128 parts of them at a time.

    Use it as a context manager, which deletes the files.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._files: list[list[IO[bytes] | None]] = [[None] * _GROUPS, [None] * _GROUPS]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, side: int, key: int, value: int) -> None:
        """Add an entry of the version ``side``, 0 or 1; key and value have 64 bits."""
        files = self._files[side]
        file = files[key % _GROUPS]
        if file is None:
            spooled: Any = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by the stack
            file = files[key % _GROUPS] = self._stack.enter_context(spooled)
        file.write(_ENTRY.pack(key, value))

    def groups(self) -> Iterator[EqualKeys]:
        """Yield the entries of each key."""
        for number in range(_GROUPS):
            by_key: dict[int, EqualKeys] = defaultdict(lambda: EqualKeys([], []))
            for side in (0, 1):
                for key, value in self._read(side, number):
                    by_key[key][side].append(value)
            yield from by_key.values()

    def _read(self, side: int, number: int) -> Iterator[tuple[int, int]]:
        file = self._files[side][number]
        if file is None:
            return
        file.seek(0)
        while block := file.read(_ENTRY.size << 12):
            yield from _ENTRY.iter_unpack(block)
