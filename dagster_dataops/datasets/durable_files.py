"""File operations for crash safety: atomic replacement, fsync, and errors that name the path."""

import os
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from dagster_dataops.errors import StorageError
from dagster_dataops.foundation.places.bucket import Location

COPY_BYTES = 8 << 20
_ADVISE = getattr(os, "posix_fadvise", None)  # Linux has it; some systems do not


class storage:  # noqa: N801 - used like a statement; a generator takes three times as long
    """Convert an ``OSError`` in the block to a `StorageError` that names the file."""

    __slots__ = ("_action", "_location")

    def __init__(self, location: Location, action: str) -> None:
        self._location = location
        self._action = action

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise StorageError(str(self._location), self._action, reason) from error


def read_if_there(path: Path, action: str) -> bytes:
    """Return the content of ``path``; empty if the file does not exist.

    Other errors are raised, because the file may exist and be unreadable only at the moment.
    """
    with storage(path, action):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of ``data``; a single ``write`` may write less."""
    written = os.write(descriptor, data)
    if written < len(data):
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def begin_sync(descriptor: int, start: int, size: int) -> None:
    """Begin to put new bytes of a file on the disk, so that a later sync waits less.

    It advises the system that the bytes are not read again soon, which makes Linux write the new
    ones. While they are written they stay in memory, from where the next step reads them. An error
    of the advice is ignored: the later sync writes all the same.
    """
    if _ADVISE is not None:
        with suppress(OSError):
            _ADVISE(descriptor, start, size, os.POSIX_FADV_DONTNEED)


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its parents if missing."""
    with storage(folder, "create the folder"):
        folder.mkdir(parents=True, exist_ok=True)


def make_folder_durably(folder: Path) -> None:
    """Create ``folder`` and its parents if missing, and fsync them against power loss.

    Each new folder takes a sync of the one above it, so that the first node of a root and of a
    pipeline takes one more each. Some file systems keep new folders with the files in them, but
    none promises it: a power loss may take the name of the outermost, and all that is in it.
    """
    with storage(folder, "create the folder"):
        missing = list(takewhile(lambda parent: not parent.exists(), (folder, *folder.parents)))
        folder.mkdir(parents=True, exist_ok=True)
        for created in missing:
            sync_folder(created.parent)


def sync_data(path: Path) -> None:
    """Make the content of the file ``path`` survive a power loss, not its modification time."""
    with storage(path, "sync"):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Fsync ``folder``, so that renames in it survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Fsync all files of a folder, then the folders, the inner ones first."""
    for where, _, names in os.walk(folder, topdown=False):
        for name in names:
            descriptor = os.open(Path(where) / name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(where))


def create_anew(path: Path) -> int:
    """Create a new file at ``path``, replacing an existing one; return its descriptor.

    Symbolic links are never followed, because another user could make one that points at our files.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        path.unlink()
        return os.open(path, flags, 0o666)


def write_durably(path: Path, data: bytes) -> None:
    """Replace the file ``path`` with ``data`` atomically and durably."""
    draft = draft_of(path)
    with storage(path, "write the file"):
        _write_synced(draft, data)
        draft.replace(path)
        sync_folder(path.parent)


def write_draft(path: Path, data: bytes, *, sync_name: bool = True) -> None:
    """Write ``data`` durably as the draft of ``path``; a crash may leave an incomplete draft.

    Args:
        path: The file that it is a draft of.
        data: Its content.
        sync_name: Whether the name of the draft, and of others beside it, survives a power loss.
    """
    draft = draft_of(path)
    with storage(draft, "write the file"):
        _write_synced(draft, data)
        if sync_name:
            sync_folder(path.parent)


def _write_synced(path: Path, data: bytes) -> None:
    with os.fdopen(create_anew(path), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def copy_durably(source: Path, target: Path) -> None:
    """Copy ``source`` to ``target`` durably; ``target`` is replaced atomically."""
    make_folder(target.parent)
    draft = draft_of(target)
    with storage(target, f"copy {source} to it"):
        with source.open("rb") as reader, os.fdopen(create_anew(draft), "wb") as writer:
            append_file(reader.fileno(), writer.fileno())
            os.fsync(writer.fileno())
        draft.replace(target)
        sync_folder(target.parent)


def append_file(reader: int, writer: int) -> None:
    """Append the rest of the file ``reader`` to the file ``writer``, both by descriptor."""
    while block := os.read(reader, COPY_BYTES):
        write_all(writer, block)


def draft_file(path: Path) -> Path | None:
    """Return the draft of a file; ``None`` if there is none."""
    draft = draft_of(path)
    return draft if draft.exists() else None


def draft_of(path: Path) -> Path:
    """Return the path at which the next version of ``path`` is written before it is renamed."""
    return path.with_name(f".{path.name}.draft")
