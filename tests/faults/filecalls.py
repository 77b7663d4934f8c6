"""File calls: every call that changes a file, of every process of a run, recorded or disturbed.

`filecalls.c` is built and preloaded into a process; its children inherit it. A process that runs
under it has a `Control` over itself and all of them.
"""

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

_SOURCE: Final = Path(__file__).with_name("filecalls.c")
_ENTRY: Final = struct.Struct("<qqqqqiiii")
_BLOCK_BYTES: Final = 4096


class Action(IntEnum):
    """The action on the disturbed call."""

    NOTHING = 0
    KILL_BEFORE = 1
    KILL_HALFWAY = 2  # half of the data is written
    KILL_AFTER = 3
    FAIL = 4
    FAIL_FROM_THEN_ON = 5
    SHORTEN = 6  # half of the data is written, and the call reports that


class Operation(IntEnum):
    """The kind of a recorded call."""

    CREATE = 0
    WRITE = 1
    TRUNCATE = 2
    SYNC = 3
    SYNC_DATA = 4
    RENAME = 5
    LINK = 6
    UNLINK = 7
    MAKE_FOLDER = 8
    REMOVE_FOLDER = 9
    SYMLINK = 10


class Entry(NamedTuple):
    """One recorded call that succeeded.

    Attributes:
        operation: The kind of the call.
        process: The process that made it.
        time_ns: The time, on the monotonic clock.
        inode: Inode of the file or folder; for calls on names, the new inode of the name.
        path: The name; for a rename or link, the old name.
        target: The new name of a rename or link.
        offset: Position of the write, or the new size.
        modified_ns: The file's modification time afterwards.
        data: The written bytes; of a symbolic link the path that it holds.
    """

    operation: Operation
    process: int
    time_ns: int
    inode: int
    path: str
    target: str
    offset: int
    modified_ns: int
    data: bytes


def read_log(path: Path) -> Iterator[Entry]:
    """Yield the recorded calls in the order of their effects."""
    content = path.read_bytes()
    at = 0
    while at < len(content):
        time_ns, inode, offset, modified_ns, size, operation, process, *lengths = (
            _ENTRY.unpack_from(content, at)
        )
        at += _ENTRY.size
        parts = []
        for length in (*lengths, size):
            parts.append(content[at : at + length])
            at += length
        path_, target = (os.fsdecode(part) for part in parts[:2])
        yield Entry(
            Operation(operation),
            process,
            time_ns,
            inode,
            path_,
            target,
            offset,
            modified_ns,
            parts[2],
        )


class _Block(ctypes.Structure):
    _fields_: Final = [
        ("count", ctypes.c_int64),
        ("at", ctypes.c_int64),
        ("fired", ctypes.c_int64),
        ("action", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("armed", ctypes.c_int32),
        ("reads", ctypes.c_int32),
        ("skip_syncs", ctypes.c_int32),
        ("alone", ctypes.c_int32),
        ("prefix", ctypes.c_char * 512),
        ("log", ctypes.c_char * 512),
        ("what", ctypes.c_char * 512),
    ]


class Control:
    """Arms and disarms the preloaded library for this process and its children.

    Attributes:
        count: Number of calls counted since it was armed.
        fired: Number of the call that was disturbed; 0 for none.
        what: The kind of that call.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        library.filecalls_control.restype = ctypes.POINTER(_Block)
        self._reset = library.filecalls_reset
        self._block = library.filecalls_control().contents

    def arm(
        self,
        prefix: Path,
        *,
        log: Path | None = None,
        at: int = 0,
        action: Action = Action.NOTHING,
        error: int = 0,
        alone: bool = False,
        reads: bool = False,
        skip_syncs: bool = False,
    ) -> None:
        """Begin to count the calls on files below ``prefix``; no other process may be running.

        Args:
            prefix: A folder.
            log: An empty file for the records.
            at: Number of the call to disturb, from 1.
            action: The action on that call.
            error: Number of the error with which the call fails.
            alone: Whether a kill ends only the process that makes the call, not the whole group.
            reads: Whether calls that read count as well.
            skip_syncs: Whether syncs are counted but not made, which takes less time.
        """
        self._reset()
        block = self._block
        block.at, block.action, block.error = at, action, error
        block.reads, block.skip_syncs, block.alone = reads, skip_syncs, alone
        block.prefix = os.fsencode(prefix)
        block.log = os.fsencode(log) if log else b""
        block.armed = 1

    def disarm(self) -> None:
        """Disturb no further call."""
        self._block.armed = 0

    @property
    def count(self) -> int:
        return int(self._block.count)

    @property
    def fired(self) -> int:
        return int(self._block.fired)

    @property
    def what(self) -> str:
        return os.fsdecode(self._block.what)


def compiler() -> str | None:
    """Return the command that builds the library; ``None`` where it cannot be built."""
    return (shutil.which("cc") or shutil.which("gcc")) if sys.platform == "linux" else None


def built(folder: Path) -> Path:
    """Build the library in a folder and return its path."""
    library = folder / "filecalls.so"
    build = [str(compiler()), "-O1", "-shared", "-fPIC", "-o", str(library), str(_SOURCE)]
    subprocess.run([*build, "-ldl", "-lpthread"], check=True)
    return library


def preloaded(library: Path, folder: Path) -> dict[str, str]:
    """Return the environment in which a process runs with the library."""
    block = folder / "filecalls.control"
    block.write_bytes(bytes(_BLOCK_BYTES))
    return os.environ | {"LD_PRELOAD": str(library), "FILECALLS": str(block)}
