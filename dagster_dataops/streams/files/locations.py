"""Location: where a file lies and how it is packed.

A plain file of this machine is read where it lies, at any position. A packed one is unpacked from
its beginning, whatever the position; what lies before is not parsed again.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import xxhash

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.files.contents import Content, PlainContent, Source, WindowedContent
from dagster_dataops.streams.files.decompression import SUFFIXES, Unpacked
from dagster_dataops.streams.files.descriptors import opened
from dagster_dataops.streams.files.remote import RemoteFile, file_details, identity_of, is_url

_LOOKED_AT: Final = 64 << 10


def packed_as(path: str) -> str | None:
    """Return how a file is packed by the end of its name; of a URL, the part before ``?``."""
    name = re.split(r"[?#]", path.partition("::")[0])[0] if is_url(path) else path
    return SUFFIXES.get(PurePosixPath(name).suffix.lower())


@dataclass(frozen=True)
class Location:
    """One file.

    Attributes:
        path: On this machine, or a URL.
        compression: How it is packed, such as ``gzip``; ``None`` if it is not.
        storage_options: What fsspec's file system is made with.
    """

    path: str
    compression: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_plain(self) -> bool:
        """Whether it lies on this machine as it is."""
        return self.compression is None and not is_url(self.path)

    def opened(self) -> Content:
        """Open it.

        Raises:
            StreamSourceError: A file of this machine cannot be opened; others fail when read.
        """
        return PlainContent(self.path) if self.is_plain else WindowedContent(self._source)

    def _source(self) -> Source:
        if self.compression is None:
            return self.raw_source()
        return Unpacked(self.path, self.raw_source, self.compression)

    def raw_source(self) -> Source:
        """Open it as it is packed.

        Raises:
            StreamSourceError: It cannot be opened.
        """
        if is_url(self.path):
            return RemoteFile(self.path, self.storage_options)
        try:
            return Path(self.path).open("rb")
        except OSError as error:
            raise StreamSourceError(self.path, f"cannot be read: {error.strerror}") from error

    def identity(self) -> object:
        """Return what tells its content from others'.

        That is length, beginning and end of a file of this machine; of one by URL, its size with a
        checksum or time if its place tells any, else its beginning.

        Raises:
            StreamSourceError: It cannot be read.
        """
        if is_url(self.path):
            told = identity_of(file_details(self.path, self.storage_options))
            return told or self._beginning()
        with opened(self.path) as descriptor:
            size = os.fstat(descriptor).st_size
            ends = [self._end(descriptor, at) for at in (0, max(0, size - _LOOKED_AT))]
        return [size, *ends]

    def _end(self, descriptor: int, at: int) -> str:
        try:
            return xxhash.xxh3_64_hexdigest(os.pread(descriptor, _LOOKED_AT, at))
        except OSError as error:
            raise StreamSourceError(self.path, f"cannot be read: {error.strerror}") from error

    def stamp(self) -> list[int] | None:
        """Return what the file system knows of it, if it is there; ``None`` of a URL.

        That changes with every rewriting, though beginning and end may stay as they were.
        """
        if is_url(self.path):
            return None
        try:
            status = Path(self.path).stat()
        except OSError:
            return None
        return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]

    def size(self) -> int:
        """Return how many bytes it has on this machine."""
        try:
            return Path(self.path).stat().st_size
        except OSError as error:
            raise StreamSourceError(self.path, f"cannot be read: {error.strerror}") from error

    def _beginning(self) -> object:
        size = file_details(self.path, self.storage_options).get("size")
        with WindowedContent(self.raw_source) as content:
            head = content.read_at(_LOOKED_AT, 0)
            if content.failure is not None:
                raise content.failure
        return [size, xxhash.xxh3_64_hexdigest(head)]
