"""Which files operators have read that no record identifies, to notice when one is replaced.

A reference with a digest or a version names one content: what was made of it stays right. A plain
path names whatever is there. Reading such a file is noted: the record gets a hidden count, and the
checkpoint a line with the state of the file. At the end of a run, and before it is resumed, the
states are compared. A finished result of such records is not used again.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final, Self

import orjson

from dagster_dataops.errors import FileChangedError, FileError

COUNT: Final = ".files"  # the hidden count of records
_LOG: Final = "file-reads-*.jsonl"  # in the folder of a checkpoint
_AT_ONCE: Final = 1024
_THREADS: Final = 16


class FileReads:
    """The reads of this process, in order, of files that no record identifies.

    Attributes:
        number: How many there were.
    """

    def __init__(self) -> None:
        self.number = 0
        self._lock = threading.Lock()
        self._unnoted = threading.local()
        self._logs: list[FileReadLog] = []

    def note(self, file: str, state: list[object]) -> None:
        """Note that a file was read, and its state."""
        if getattr(self._unnoted, "on", False):
            return
        line = orjson.dumps([file, state], option=orjson.OPT_APPEND_NEWLINE)
        with self._lock:
            self.number += 1
            for log in self._logs:
                log.lines.append(line)

    @contextmanager
    def unnoted(self) -> Iterator[None]:
        """Do not note the reads of this thread in the block: no record depends on them."""
        self._unnoted.on = True
        try:
            yield
        finally:
            self._unnoted.on = False

    def begin(self, log: "FileReadLog") -> None:
        """Add reads to a log from now on."""
        with self._lock:
            self._logs.append(log)

    def end(self, log: "FileReadLog") -> None:
        """Stop adding reads to a log."""
        with self._lock:
            if log in self._logs:
                self._logs.remove(log)

    def end_all(self) -> None:
        """Stop adding reads to all logs. A forked process does so: its parent writes the logs."""
        self._logs.clear()


READS: Final = FileReads()
os.register_at_fork(after_in_child=READS.end_all)


class FileReadLog:
    """Writes the reads of this process to the folder of a checkpoint, while it is open.

    Several runs of one process may get reads of each other: a file too many is compared.

    Args:
        folder: The folder of the checkpoint, or another one; the first read makes a missing one.
        writer: The name of the writer, which no other process has.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path, writer: str = "") -> None:
        self.folder = folder
        self._path = folder / _LOG.replace("*", writer or f"head-{os.getpid()}")
        self.lines: list[bytes] = []
        READS.begin(self)

    def write(self) -> None:
        """Write the reads since the last time, before the records that made them are journaled.

        Raises:
            OSError: The disk refuses.
        """
        if not self.lines:
            return
        count = len(self.lines)
        new = not self._path.exists()
        if new:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        with self._path.open("ab") as file:
            file.write((_system() if new else b"") + b"".join(self.lines[:count]))
        del self.lines[:count]

    def close(self) -> None:
        """Stop taking reads."""
        READS.end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _system() -> bytes:
    """Return the line that tells whether a log may have lost lines: the time when Linux started."""
    try:
        return orjson.dumps(Path("/proc/sys/kernel/random/boot_id").read_text("ascii")) + b"\n"
    except OSError:
        return b'""\n'


def noted_reads(folder: Path) -> dict[str, int | float]:
    """Return the hidden count of a result; empty if no such file was read for a checkpoint."""
    return {COUNT: 1} if any(folder.glob(_LOG)) else {}


def first_replaced(folder: Path) -> str:
    """Return why a file that was read for a checkpoint is another one now; empty if none is."""
    logs = sorted(folder.glob(_LOG))
    if not logs:
        return "it is not known which files were read"
    for log in logs:
        with log.open("rb") as file:
            if file.readline() != _system():
                return "the machine was started since the files were read"
    return next((f"{name}: {change}" for name, change in _changes(folder)), "")


def check_unchanged(folder: Path) -> None:
    """Check that no file was replaced since it was read for a checkpoint."""
    for name, change in _changes(folder):
        remedy = "run again: the records that were made of such files are made again"
        raise FileChangedError(name, change, remedy)


def _changes(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each file that is another one now, and what it is instead."""
    from concurrent.futures import ThreadPoolExecutor

    for log in sorted(folder.glob(_LOG)):
        with log.open("rb") as file, ThreadPoolExecutor(_THREADS) as pool:
            file.readline()
            while lines := list(islice(file, _AT_ONCE)):
                yield from filter(None, pool.map(_change, dict.fromkeys(lines)))


def _change(line: bytes) -> tuple[str, str] | None:
    from dagster_dataops.datasets.file_values.opened_file import state_of_file

    try:
        name, state = orjson.loads(line)
    except ValueError:
        return "the log of the files that were read", "is damaged"
    try:
        now = state_of_file(name)
    except FileError as error:
        return name, error.found
    return None if now == state else (name, "was replaced since it was read")


def forget(folder: Path) -> None:
    """Delete the logs of a checkpoint whose records are made again."""
    for log in folder.glob(_LOG):
        os.unlink(log)  # noqa: PTH108
