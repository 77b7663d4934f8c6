"""Open a file where it is: a file of this machine, a folder with its parts, or an object."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import BucketFile, Location
from dagster_dataops.foundation.places.file_state import FileState
from dagster_dataops.foundation.places.range_source import RangeSource, Readable, close_readable

PLAIN: Final = "jsonl"
COMPRESSED: Final = "jsonl.zst"
FORMS: Final = (PLAIN, COMPRESSED)  # of a file of lines; the text is the same
_ENDINGS: Final = (f".{COMPRESSED}", f".{COMPRESSED}.draft")


def is_compressed(name: str) -> bool:
    """Return whether a file has the name of a compressed one, or of the draft of one."""
    return name.endswith(_ENDINGS)


def _object(location: BucketFile) -> RangeSource:
    from dagster_dataops.foundation.places.object_file import ObjectFile  # only if there is one

    return ObjectFile(location)


def open_readable(location: Location) -> Readable:
    """Open a file; close it with `close_readable`.

    Of a compressed result it is the text: size and positions are those of the lines.

    Raises:
        InputError: It is a pipe or a device, an object that cannot be read, or a compressed result
            that is damaged.
        MissingExtraError: It is compressed, and the package for that is not installed.
        OSError: It cannot be read, or is a folder of other files than parts.
    """
    source = open_stored(location)
    if not is_compressed(location.name):
        return source
    from dagster_dataops.foundation.places.framed_file import text_of  # an extra

    return text_of(source, str(location))


def open_stored(location: Location) -> Readable:
    """Open a file as it is stored, perhaps compressed; otherwise as `open_readable`."""
    if isinstance(location, BucketFile):
        return _object(location)
    # O_NONBLOCK: opening a pipe without a writer must not block.
    descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if not stat.S_ISDIR(mode):
        raise InputError(str(location), "is a pipe or a device; write it to a file first")
    from dagster_dataops.foundation.places.parted_file import PartedFile  # a folder is rare

    return PartedFile(Path(location))


@contextmanager
def opened(location: Location) -> Iterator[Readable]:
    """Yield a file, open inside the block.

    Raises:
        OSError: It cannot be read, or is a folder of other files than parts.
    """
    source = open_readable(location)
    try:
        yield source
    finally:
        close_readable(source)


def state_at(location: Location) -> FileState:
    """Return the state of a file.

    Raises:
        InputError: It is an object that cannot be read.
        OSError: It does not exist, or is a folder of other files than parts.
    """
    if isinstance(location, BucketFile):
        return _object(location).state()
    status = os.stat(location)  # noqa: PTH116 - a path, or the copy of an object
    if not stat.S_ISDIR(status.st_mode):
        return FileState.of(status)
    from dagster_dataops.foundation.places.parted_file import state_of_parts

    return state_of_parts(Path(location))


def exists(location: Location) -> bool:
    """Whether there is a file, a file in parts, or an object that can be read."""
    try:
        state_at(location)
    except (OSError, InputError):
        return False
    return True
