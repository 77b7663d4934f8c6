"""`PartedFile`: a folder of jsonl files that is read like one file."""

import errno
import os
import re
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Final

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import RangeSource, read_range

_PART: Final = re.compile(r"(.+-)(\d{5,})\.jsonl")


class PartedFile(RangeSource):
    """A jsonl file that is split in parts: files of one folder, ``<name>-00000.jsonl`` and so on.

    It is an export with ``records_per_file``, or a result of version 0.2. Its content is that of
    the parts in order. Each part ends with a newline. Hidden files of the folder do not count. No
    file is kept open, so that it can be used by several threads and processes, whatever the number
    of parts.

    Attributes:
        folder: The folder; a link to it was followed.
        paths: The paths of the parts, in order.

    Raises:
        IsADirectoryError: The folder holds anything else, or a part is missing in between.
        OSError: It cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, parts = _parts_in(folder)
        self.name = str(self.folder)
        self.paths = [self.folder / name for name, _ in parts]
        self._starts = list(accumulate((status.st_size for _, status in parts), initial=0))
        self.size = self._starts[-1]

    @override
    def read(self, start: int, length: int) -> bytes:
        pieces = []
        end = min(start + length, self.size)
        number = bisect_right(self._starts, start) - 1
        while start < end:
            upto = min(end, self._starts[number + 1])
            piece = self._read_part(number, start - self._starts[number], upto - start)
            pieces.append(piece)
            if len(piece) < upto - start:  # it became shorter
                break
            start, number = upto, number + 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_part(self, number: int, start: int, length: int) -> bytes:
        descriptor = os.open(self.paths[number], os.O_RDONLY | os.O_CLOEXEC)
        try:
            return read_range(descriptor, start, length)
        finally:
            os.close(descriptor)

    @override
    def state(self) -> FileState:
        return state_of_parts(self.folder)


def state_of_parts(path: Path) -> FileState:
    """Return the state of a file in parts: the latest times of any part.

    Raises:
        IsADirectoryError: The folder holds anything else, or a part is missing in between.
        OSError: It cannot be read.
    """
    folder, parts = _parts_in(path)
    states = [status for _, status in parts]
    return FileState(
        folder.stat().st_ino,
        sum(state.st_size for state in states),
        max(state.st_mtime_ns for state in states),
        max(state.st_ctime_ns for state in states),
    )


def _parts_in(folder: Path) -> tuple[Path, list[tuple[str, os.stat_result]]]:
    """Return a folder, after links, and name and status of each part in it, in order."""
    real = folder.resolve(strict=True)
    with os.scandir(real) as entries:
        visible = [entry for entry in entries if not entry.name.startswith(".")]
        matched = [(_PART.fullmatch(entry.name), entry.stat()) for entry in visible]
    parts = [(name[1], int(name[2]), name[0], status) for name, status in matched if name]
    parts.sort(key=lambda part: part[:2])
    if not parts or [part[:2] for part in parts] != [
        (parts[0][0], at) for at in range(len(matched))
    ]:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(folder))
    return real, [(name, status) for _, _, name, status in parts]
