"""Files of parts: several byte strings in one file, each with its checksum.

A file is complete or absent, unless the machine loses power; the checksums then show the damage.
"""

import os
import re
import shutil
import struct
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, overload

import xxhash
from typing_extensions import override

from dagster_dataops.datasets.durable_files import draft_of, storage

_ENTRY: Final = struct.Struct("<QQQ")  # offset, bytes, checksum
_END: Final = struct.Struct("<QQ")  # checksum and number of the entries
_NAME: Final = re.compile(r"[a-z]+-[0-9]{6,}")


class DamagedPartError(ValueError):
    """A file of parts is damaged or gone; the step that writes it can be repeated.

    Attributes:
        path: The file, or the folder of a stage.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file of parts."""
    entries, offset = [], 0
    draft = draft_of(path.with_name(f"{path.name}-{uuid.uuid4().hex}"))  # of this process alone
    with storage(path, "write"):
        with draft.open("wb") as file:
            for part in parts:
                file.write(part)
                entries.append((offset, len(part), xxhash.xxh3_64_intdigest(part)))
                offset += len(part)
            index = b"".join(_ENTRY.pack(*entry) for entry in entries)
            file.write(index + _END.pack(xxhash.xxh3_64_intdigest(index), len(entries)))
        draft.replace(path)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    with storage(path, "read"):
        try:
            yield
        except (FileNotFoundError, IsADirectoryError):
            raise DamagedPartError(str(path)) from None


def is_whole(path: Path, *, deeply: bool = False) -> bool:
    """Return whether a file of parts can be read.

    Args:
        path: The file.
        deeply: Whether to check all parts, and not only their list.
    """
    try:
        parts = PartsFile(path)
        return not deeply or sum(1 for _ in parts) == len(parts)
    except DamagedPartError:
        return False


def remove_damaged(folder: Path) -> None:
    """Delete the damaged files of parts in a folder."""
    for path in folder.glob("*-*"):
        if _NAME.fullmatch(path.name) and not is_whole(path, deeply=True):
            remove(path)


def remove(path: Path) -> None:
    """Delete a file, or a folder with all that is in it; nothing if there is none."""
    with storage(path, "delete"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class _LazyParts(Sequence[bytes]):
    """Parts that are read one by one."""

    @abstractmethod
    def _part(self, number: int) -> bytes: ...

    @overload
    def __getitem__(self, number: int) -> bytes: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[bytes]: ...
    @override
    def __getitem__(self, number: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(number, slice):
            return [self._part(at) for at in range(*number.indices(len(self)))]
        return self._part(number)


class PartsFile(_LazyParts):
    """The parts of a file; each access reads one.

    Args:
        path: The file.

    Raises:
        DamagedPartError: The file is not whole, or there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with _reading(path), path.open("rb") as file:
            end = file.seek(0, os.SEEK_END) - _END.size
            file.seek(max(0, end))
            last = file.read()
            check, count = _END.unpack(last) if len(last) == _END.size else (0, 0)
            start = end - count * _ENTRY.size
            file.seek(max(0, start))
            index = file.read(end - start) if 0 <= start <= end else b""
        if end < 0 or start < 0 or xxhash.xxh3_64_intdigest(index) != check:
            raise DamagedPartError(str(path))
        self._entries = list(_ENTRY.iter_unpack(index))
        if start != sum(length for _, length, _ in self._entries):  # a part of a file may end so
            raise DamagedPartError(str(path))

    @override
    def __len__(self) -> int:
        return len(self._entries)

    @override
    def _part(self, number: int) -> bytes:
        offset, length, check = self._entries[number]
        with _reading(self._path), self._path.open("rb") as file:
            file.seek(offset)
            part = file.read(length)
        if xxhash.xxh3_64_intdigest(part) != check:
            raise DamagedPartError(str(self._path))
        return part


class Column(_LazyParts):
    """The part of one number in each of several files.

    Args:
        paths: The files.
        number: Of the part.
    """

    def __init__(self, paths: Sequence[Path], number: int) -> None:
        self._paths, self._number = paths, number

    @override
    def __len__(self) -> int:
        return len(self._paths)

    @override
    def _part(self, number: int) -> bytes:
        return PartsFile(self._paths[number])[self._number]
