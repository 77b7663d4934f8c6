"""Read byte ranges of a file, of a file that is split in parts, or of an object on a store."""

import errno
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeAlias

from dagster_dataops.configuration import input_object
from dagster_dataops.errors import InputError
from dagster_dataops.stores.object_file import ObjectFile

_SECOND_NS: Final = 1_000_000_000
_COARSE_NS: Final = 60 * _SECOND_NS  # two seconds, and the clock of a server may differ from ours
_TICK_NS: Final = 20_000_000  # the kernel's clock for files moves every 1 to 10 ms
_PART: Final = re.compile(r"(.+-)(\d{5,})\.jsonl")


class PartedFile(NamedTuple):
    """A jsonl file that is split in parts: files of one folder, ``<name>-00000.jsonl`` and so on.

    It is an export with ``records_per_file``, or a result of version 0.2. Its content is that of
    the parts in order. Each part ends with a newline. Hidden files of the folder do not count. No
    file is kept open, so that it can be used by several threads and processes, whatever the number
    of parts.

    Attributes:
        folder: The folder; a link to it was followed.
        names: The names of the parts, in order.
        starts: The byte position of each part in the whole, and the size of the whole.
    """

    folder: Path
    names: tuple[str, ...]
    starts: tuple[int, ...]

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Return the file whose parts are in a folder.

        Raises:
            IsADirectoryError: The folder holds anything else, or a part is missing in between.
            OSError: It cannot be read.
        """
        real, parts = _parts_in(folder)
        starts = accumulate((status.st_size for _, status in parts), initial=0)
        return cls(real, tuple(name for name, _ in parts), tuple(starts))

    @property
    def size(self) -> int:
        """The size of the whole in bytes."""
        return self.starts[-1]

    @property
    def paths(self) -> list[Path]:
        """The paths of the parts, in order."""
        return [self.folder / name for name in self.names]

    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start``; fewer only at the end.

        Raises:
            OSError: A part cannot be read, for example because the file was replaced.
        """
        pieces = []
        end = min(start + length, self.size)
        number = bisect_right(self.starts, start) - 1
        while start < end:
            upto = min(end, self.starts[number + 1])
            piece = self._read_part(number, start - self.starts[number], upto - start)
            pieces.append(piece)
            if len(piece) < upto - start:  # it became shorter
                break
            start, number = upto, number + 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_part(self, number: int, start: int, length: int) -> bytes:
        descriptor = os.open(self.folder / self.names[number], os.O_RDONLY | os.O_CLOEXEC)
        try:
            return read_range(descriptor, start, length)
        finally:
            os.close(descriptor)


Readable: TypeAlias = int | PartedFile | ObjectFile
"""The descriptor of an open file, a file in parts, or an object on a store."""


def read_range(source: Readable, start: int, length: int) -> bytes:
    """Return ``length`` bytes from ``start``; fewer only at the end of the file."""
    if not isinstance(source, int):
        return source.read(start, length)
    data = os.pread(source, length, start)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing and (more := os.pread(source, missing, start + length - missing)):
        parts.append(more)
        missing -= len(more)
    return b"".join(parts)


def expect(source: Readable, start: int, end: int) -> None:
    """Announce that bytes [start, end) will be read in order; a store is asked for them at once."""
    if isinstance(source, ObjectFile):
        source.expect(start, end)


def read_blocks(source: Readable, size: int) -> Iterator[bytes]:
    """Yield the whole file, in blocks of ``size`` bytes."""
    start = 0
    while block := read_range(source, start, size):
        yield block
        start += len(block)


def open_readable(path: Path) -> Readable:
    """Open a file; close it with `close_readable`.

    Raises:
        InputError: It is a pipe or a device, or an object that cannot be read.
        OSError: It cannot be read, or is a folder of other files than parts.
    """
    if input_object(path) is not None:
        return ObjectFile(path)
    # O_NONBLOCK: opening a pipe without a writer must not block.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if not stat.S_ISDIR(mode):
        raise InputError(str(path), "is a pipe or a device; write it to a file first")
    return PartedFile.at(path)


def size_of(source: Readable) -> int:
    """Return the size of an open file in bytes."""
    return os.fstat(source).st_size if isinstance(source, int) else source.size


def close_readable(source: Readable) -> None:
    """Close a file."""
    if isinstance(source, int):
        os.close(source)


@contextmanager
def opened(path: Path) -> Iterator[Readable]:
    """Yield a file, open inside the block.

    Raises:
        OSError: It cannot be read, or is a folder of other files than parts.
    """
    source = open_readable(path)
    try:
        yield source
    finally:
        close_readable(source)


def exists(path: Path) -> bool:
    """Whether there is a file, a file in parts, or an object that can be read."""
    try:
        FileState.at(path)
    except (OSError, InputError):
        return False
    return True


class FileState(NamedTuple):
    """The identity of a file's content in the file system.

    The content cannot be changed without changing at least one of these values, unless it is
    changed twice within a tick of the clock of its file system; see `coarse`. The number of the
    device is none of them: it differs between machines, and after a file system is mounted again.
    Of an object on a store, a number made of its entity tag stands for the time of the last change.

    Attributes:
        inode: The inode number; of a file in parts that of the folder.
        size: The size in bytes.
        modified_ns: The time of the last change of the content, in nanoseconds. Programs can set
            it.
        changed_ns: The time of the last change of content or metadata, including links and
            permissions, in nanoseconds. Programs cannot set it.
    """

    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return the state from the result of a ``stat`` call on a file."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return the state of a file, or of a file in parts: the latest times of any part.

        Raises:
            OSError: It does not exist, or is a folder of other files than parts.
        """
        if input_object(path) is not None:
            return cls._of_object(ObjectFile(path))
        status = path.stat()
        if not stat.S_ISDIR(status.st_mode):
            return cls.of(status)
        return cls._of_parts(path)

    @classmethod
    def of_readable(cls, source: Readable) -> Self:
        """Return the state of an open file.

        Raises:
            OSError: A part cannot be read any more.
        """
        if isinstance(source, ObjectFile):
            return cls._of_object(source)
        if isinstance(source, PartedFile):
            return cls._of_parts(source.folder)
        return cls.of(os.fstat(source))

    @classmethod
    def _of_object(cls, found: ObjectFile) -> Self:
        return cls(0, found.size, found.mark, 0)

    @classmethod
    def _of_parts(cls, path: Path) -> Self:
        folder, parts = _parts_in(path)
        found, status = [one for _, one in parts], folder.stat()
        return cls(
            status.st_ino,
            sum(one.st_size for one in found),
            max(one.st_mtime_ns for one in found),
            max(one.st_ctime_ns for one in found),
        )

    @property
    def coarse(self) -> bool:
        """Whether the file system counts whole seconds, or two, as ext3, FAT and some servers do.

        Then two contents of a file may have the same state.
        """
        return bool(self.changed_ns) and not self.changed_ns % _SECOND_NS

    def hides_changes(self, since_ns: int) -> bool:
        """Return whether a file may have changed since a time and still be in this state.

        Args:
            since_ns: The time, in nanoseconds since 1970.
        """
        window = _COARSE_NS if self.coarse else _TICK_NS
        return bool(self.changed_ns) and self.changed_ns > since_ns - window

    def resembles(self, other: tuple[int, ...]) -> bool:
        """Return whether all values but ``changed_ns`` are equal; a new link changes it too."""
        return self[:-1] == other[:-1]


def _parts_in(folder: Path) -> "tuple[Path, list[tuple[str, os.stat_result]]]":
    """Return a folder, after links, and name and status of each part in it, in order."""
    real = folder.resolve(strict=True)
    with os.scandir(real) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(".")]
        found = [(_PART.fullmatch(entry.name), entry.stat()) for entry in visible]
    parts = [(name[1], int(name[2]), name[0], status) for name, status in found if name]
    parts.sort(key=lambda one: one[:2])
    if not parts or [one[:2] for one in parts] != [(parts[0][0], at) for at in range(len(found))]:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(folder))
    return real, [(name, status) for _, _, name, status in parts]
