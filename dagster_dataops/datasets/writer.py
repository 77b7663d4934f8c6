"""`JsonlWriter`: write a dataset to a draft file, then rename it into place."""

import itertools
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import xxhash

from dagster_dataops.concurrency.background import background
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import (
    copy_durably,
    create_anew,
    draft_of,
    make_folder,
    storage,
    sync_folder,
)
from dagster_dataops.datasets.lines import content_interval, iterate_lines
from dagster_dataops.errors import InputError, UnencodableError
from dagster_dataops.hashing.file_digests import has_content
from dagster_dataops.records import encode

_BUFFER_BYTES = 1 << 20
_SOON_SYNCED = 1 << 20  # fsynced by finish(); starting a thread would take longer


class JsonlWriter:
    """Collects lines in a draft file; `publish` replaces ``path`` by it, whole or not at all.

    Args:
        path: The file to be.
        source: A file that holds part of the lines already, each where it belongs; it becomes
            the draft where the file system has links.
    """

    def __init__(self, path: Path, source: Path | None = None) -> None:
        self.path = path
        self.rows = 0
        self.size_bytes = 0
        self._draft = draft_of(path)
        self._digest = xxhash.xxh3_128()
        make_folder(path.parent)
        with storage(self._draft, "create the file"):
            self.adopted = source is not None and linked(source, self._draft)
            if self.adopted:
                descriptor = os.open(self._draft, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                if os.fstat(descriptor).st_size > _SOON_SYNCED:
                    background.run(partial(_write_back, self._draft))
            else:
                descriptor = create_anew(self._draft)
            self._file = os.fdopen(descriptor, "wb", _BUFFER_BYTES)

    def write(self, lines: bytes, rows: int = 1) -> None:
        """Append ``lines``, which hold ``rows`` records and end with a newline."""
        with storage(self._draft, "write"):
            self._file.write(lines)
        self._count(lines, rows)

    def keep(self, lines: bytes, rows: int) -> None:
        """Take ``lines`` as the next ones, which are there already if the draft was adopted."""
        if self.adopted:
            with storage(self._draft, "write"):
                self._file.seek(len(lines), os.SEEK_CUR)
            self._count(lines, rows)
        else:
            self.write(lines, rows)

    def _count(self, lines: bytes, rows: int) -> None:
        self._digest.update(lines)
        self.rows += rows
        self.size_bytes += len(lines)

    def finish(self) -> JsonlDataset:
        """Fsync the draft and return its handle after publication."""
        with storage(self._draft, "write"):
            self._file.flush()
            if self.adopted:
                self._file.truncate(self.size_bytes)
            os.fsync(self._file.fileno())
            self._file.close()
        return JsonlDataset(
            path=self.path,
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
            sync_folder(self.path.parent)
        return replace(dataset, state=dataset.stamp())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._file.closed:
            with suppress(OSError):  # a full disk fails again when the buffer is flushed
                self._file.close()
            with suppress(OSError):
                self._draft.unlink(missing_ok=True)


def _write_back(path: Path) -> None:
    """Have a file on its way to the disk; that it arrives is for the sync of its writer to say."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


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


def write_records(path: Path, records: Iterable[object], source: str) -> JsonlDataset:
    """Write ``records`` to ``path``.

    Args:
        path: The file, replaced atomically.
        records: Dicts; read once, in order, never changed.
        source: The name of the records in errors.

    Raises:
        InputError: A record is not a dict, or JSON cannot hold it; the message gives its position.
    """
    with JsonlWriter(path) as writer:
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
    with JsonlWriter(path) as writer, dataset.path.open("rb") as file:
        lines = iterate_lines(file.fileno(), [content_interval(dataset.path)])
        for line in itertools.islice(lines, count):
            writer.write(line.text + b"\n")
        return writer.publish()
