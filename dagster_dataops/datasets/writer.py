"""`JsonlWriter`: write a dataset to a draft file, then rename it into place."""

import itertools
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

import xxhash

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import (
    COPY_BYTES,
    begin_sync,
    copy_durably,
    create_anew,
    draft_of,
    make_folder,
    storage,
    sync_folder,
)
from dagster_dataops.datasets.lines import iterate_lines, opened_content
from dagster_dataops.errors import InputError, UnencodableError
from dagster_dataops.foundation.hashing.file_digests import has_content
from dagster_dataops.foundation.places.opening import is_compressed
from dagster_dataops.records import encode

if TYPE_CHECKING:
    from dagster_dataops.foundation.frames.frame_writer import FrameWriter

_BUFFER_BYTES = 1 << 20
_SHORT_BYTES = 32 << 10  # lines are put together up to this size: each write has its price


class JsonlWriter:
    """Collects lines in a draft file; `publish` replaces ``path`` by it, whole or not at all.

    Args:
        path: The file to write. It is compressed if its name ends in ``.jsonl.zst``.
        scratch: Whether the file is of no use after a power loss, so that it need not be synced.

    Attributes:
        rows: How many records were written.
        size_bytes: The size of their lines.
        stored_bytes: The size of what was stored, perhaps compressed; not of a link.

    Raises:
        MissingExtraError: It is to be compressed, and the package for that is not installed.
    """

    def __init__(self, path: Path, *, scratch: bool = False) -> None:
        self.path = path
        self._scratch = scratch
        self.rows = 0
        self.size_bytes = 0
        self.stored_bytes = 0
        self._syncing_bytes = 0  # of the stored bytes: those whose sync has begun
        self._draft = draft_of(path)
        self._linked = False
        self._digest = xxhash.xxh3_128()
        self._pending = bytearray()  # neither written nor digested
        self._frames = _frame_writer(self._append) if is_compressed(path.name) else None
        self._file: IO[bytes] | None = None  # created with the first line: many stay empty
        make_folder(path.parent)
        with storage(self._draft, "remove the draft of an earlier run"):
            self._draft.unlink(missing_ok=True)

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            self._file = os.fdopen(create_anew(self._draft), "wb", _BUFFER_BYTES)
        return self._file

    def link(self, source: Path) -> None:
        """Make the draft a hard link to ``source``, where the file system has such links.

        Call it first, then `write` with the lines of ``source``, in order. They are counted and
        digested, and written only if the draft is no link. A compressed file is none.

        Args:
            source: A complete file.
        """
        if self._frames is not None:
            return
        with storage(self._draft, f"link it to {source}"):
            self._linked = linked(source, self._draft)
            self._file = self._draft.open("rb") if self._linked else None

    def write(self, lines: bytes, rows: int = 1) -> None:
        """Append ``lines``, which hold ``rows`` records and end with a newline."""
        self.rows += rows
        self.size_bytes += len(lines)
        if len(lines) >= _SHORT_BYTES:
            self._put_pending()
            self._put(lines)
            return
        self._pending += lines
        if len(self._pending) >= _SHORT_BYTES:
            self._put_pending()

    def _put_pending(self) -> None:
        if self._pending:
            self._put(self._pending)
            self._pending.clear()

    def _put(self, lines: bytes | bytearray) -> None:
        if not self._linked:
            with storage(self._draft, "write"):
                (self._append if self._frames is None else self._frames.write)(lines)
        self._digest.update(lines)

    def _append(self, data: bytes | bytearray) -> None:
        """Append bytes to the file as it is stored."""
        file = self._opened()
        file.write(data)
        self.stored_bytes += len(data)
        if self.stored_bytes - self._syncing_bytes >= COPY_BYTES and not self._scratch:
            self._begin_sync(file)

    def _begin_sync(self, file: IO[bytes]) -> None:
        """Begin to sync what was written since the last call: `finish` then waits less."""
        file.flush()
        begin_sync(file.fileno(), self._syncing_bytes, self.stored_bytes - self._syncing_bytes)
        self._syncing_bytes = self.stored_bytes

    @property
    def compressed_bytes(self) -> int:
        """The size of the finished file if it is compressed, else 0."""
        return self.stored_bytes if self._frames is not None else 0

    def _end_frames(self) -> None:
        if self._frames is not None:
            self._frames.finish(self._digest.digest())

    @property
    def modified_ns(self) -> int:
        """The modification time of the finished draft, in nanoseconds."""
        return self._draft.stat().st_mtime_ns

    def finish(self) -> JsonlDataset:
        """Fsync the draft and return its handle after publication."""
        self._put_pending()
        with storage(self._draft, "write"):
            self._end_frames()
            file = self._opened()
            file.flush()
            if not self._scratch:
                os.fsync(file.fileno())
            file.close()
        return self._dataset()

    def _dataset(self) -> JsonlDataset:
        return JsonlDataset(
            self.path,
            size_bytes=self.size_bytes,
            rows=self.rows,
            fingerprint=f"xxh3:{self._digest.hexdigest()}",
        )

    def publish(self) -> JsonlDataset:
        """Finish, and rename the draft into place unless the existing file has the same content."""
        dataset = self.finish()
        with storage(self.path, "replace the file"):
            if has_content(self.path, dataset.size_bytes, dataset.fingerprint):
                self._draft.unlink()
            else:
                self._draft.replace(self.path)
            if not self._scratch:
                sync_folder(self.path.parent)
        return replace(dataset, state=dataset.stamp())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._frames is not None:
            self._frames.close()
        if self._file is not None and not self._file.closed:
            with suppress(OSError):  # a full disk fails again when the buffer is flushed
                self._file.close()
            with suppress(OSError):
                self._draft.unlink(missing_ok=True)


def _frame_writer(put: Callable[[bytes], None]) -> "FrameWriter":
    from dagster_dataops.foundation.frames.frame_writer import FrameWriter  # an extra

    return FrameWriter(put)


def linked(source: Path, target: Path) -> bool:
    """Replace ``target`` with a hard link to ``source``; return whether links are supported."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def link_or_copy(source: Path, target: Path) -> None:
    """Put ``source`` also at ``target``: as a hard link, or as a copy without link support."""
    if not linked(source, target):
        copy_durably(source, target)


def write_records(
    path: Path, records: Iterable[object], source: str, *, scratch: bool = False
) -> JsonlDataset:
    """Write ``records`` to ``path``.

    Args:
        path: The file, replaced atomically.
        records: Dicts; read once, in order, never changed.
        source: The name of the records in errors.
        scratch: Whether the file is of no use after a power loss.
    """
    with JsonlWriter(path, scratch=scratch) as writer:
        for position, record in enumerate(records):
            if not isinstance(record, dict):
                reason = f"record {position} is a {type(record).__name__}, not a dict"
                raise InputError(source, reason)
            try:
                writer.write(encode(record))
            except UnencodableError as error:
                raise InputError(source, f"record {position}: {error}") from None
        return writer.publish()


def first_lines(dataset: JsonlDataset, path: Path, count: int) -> JsonlDataset:
    """Write the first ``count`` non-blank lines of ``dataset`` to ``path``, unchanged.

    Raises:
        InputError: The dataset cannot be read.
    """
    with JsonlWriter(path) as writer, opened_content(dataset.location) as (source, interval):
        lines = iterate_lines(source, [interval])
        for line in itertools.islice(lines, count):
            writer.write(line.text + b"\n")
        return writer.publish()
