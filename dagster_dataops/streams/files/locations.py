"""`Location`: the path and compression of one file.

An uncompressed local file is read directly at any position. A compressed file is decompressed from
its start up to the position, but the skipped content is not parsed again.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import orjson
import xxhash

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.files.contents import (
    FRAMES,
    ByteSource,
    Content,
    FramedContent,
    PlainContent,
    WindowedContent,
)
from dagster_dataops.streams.files.decompression import SUFFIXES, DecompressedSource, decompressed
from dagster_dataops.streams.files.descriptors import naming_path, opened_file
from dagster_dataops.streams.files.hive_partitions import Partition
from dagster_dataops.streams.files.remote import RemoteFile, file_details, identity_of, is_url

_DIGESTED_BYTES: Final = 64 << 10
_HTTP: Final = ("http://", "https://")
_COMPRESSED: Final = ".zst"
_RESULT: Final = f"_results.jsonl{_COMPRESSED}"
_VERSION: Final = re.compile(r"/\.versions/[^/]+/")  # in a bucket, below the folder of the manifest


def compression_of(path: str) -> str | None:
    """Return the compression by the file name's suffix; a URL's query is ignored."""
    name = re.split(r"[?#]", path.partition("::")[0])[0] if is_url(path) else path
    return SUFFIXES.get(PurePosixPath(name).suffix.lower())


@dataclass(frozen=True)
class Location:
    """One file.

    Attributes:
        path: A local path or a URL.
        compression: The compression, for example ``gzip``; ``None`` if uncompressed.
        storage_options: The arguments of fsspec's file system.
        partition: The columns in the names of its folders.
    """

    path: str
    compression: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    partition: Partition = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether the file is local and uncompressed."""
        return self.compression is None and not is_url(self.path)

    @property
    def has_ranges(self) -> bool:
        """Whether the file is local, and its text is read from any position at once."""
        return self.is_plain or self.compression == FRAMES

    def located(self, records: list[Any], file_key: str | None) -> list[Any]:
        """Return records with the columns of the folders, and the path under ``file_key``.

        A column that a record has itself stays as it is.
        """
        columns = self.partition
        if columns:
            records = [{**record, **columns, **record} for record in records]
        if file_key is not None:
            records = [{**record, file_key: self.path} for record in records]
        return records

    def opened(self) -> Content:
        """Open the file.

        Raises:
            StreamSourceError: A local file cannot be opened. Other files raise it when read.
        """
        if self.compression == FRAMES:
            return FramedContent(self.path)
        return PlainContent(self.path) if self.is_plain else WindowedContent(self._source)

    def _source(self) -> ByteSource:
        if self.compression is None:
            return self.raw_source()
        if self.path.startswith(_HTTP):
            return decompressed(self.path, self.raw_source(), self.compression, self._digest)
        return DecompressedSource(self.path, self.raw_source, self.compression, self._digest)

    def _digest(self) -> str | None:
        """Return the digest of a compressed result by its manifest; ``None`` without a manifest.

        Raises:
            StreamSourceError: There may be a manifest that cannot be read.
        """
        if not self.path.endswith(_RESULT):
            return None
        beside = _VERSION.sub("/", self.path).removesuffix(_COMPRESSED)
        manifest = Location(f"{beside}.json", None, self.storage_options)
        try:
            with manifest.opened() as content:
                told = orjson.loads(content.read_all())
        except StreamSourceError as error:
            # Without the right to list, S3 answers that a missing object is forbidden.
            if isinstance(error.__cause__, FileNotFoundError | PermissionError):
                return None
            raise
        except orjson.JSONDecodeError:
            return ""
        return str(told.get("fingerprint")) if isinstance(told, dict) else ""

    def raw_source(self) -> ByteSource:
        """Open the file without decompressing it.

        Raises:
            StreamSourceError: A local file cannot be opened.
        """
        if is_url(self.path):
            return RemoteFile(self.path, self.storage_options)
        with naming_path(self.path):
            return Path(self.path).open("rb")

    def identity(self) -> object:
        """Return a value that identifies the content of the file.

        For a local file this is its size with digests of its first and last 64 KiB. For a URL it is
        the size with the checksum or modification time that the server reports, else with a digest
        of the first 64 KiB.

        Raises:
            StreamSourceError: The file cannot be read.
        """
        if is_url(self.path):
            reported = identity_of(file_details(self.path, self.storage_options))
            return reported or self._beginning()
        with opened_file(self.path) as descriptor, naming_path(self.path):
            size = os.fstat(descriptor).st_size
            places = (0, max(0, size - _DIGESTED_BYTES))
            ends = [os.pread(descriptor, _DIGESTED_BYTES, at) for at in places]
        return [size, *map(xxhash.xxh3_64_hexdigest, ends)]

    def stamp(self) -> list[int] | None:
        """Return size, times and inode of a local file; ``None`` for a URL or a missing file.

        The value changes with every rewrite, even if the first and last bytes stay the same.
        """
        if is_url(self.path):
            return None
        try:
            status = Path(self.path).stat()
        except OSError:
            return None
        return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]

    def size(self) -> int:
        """Return the size of a local file in bytes.

        Raises:
            StreamSourceError: The file cannot be read.
        """
        with naming_path(self.path):
            return Path(self.path).stat().st_size

    def _beginning(self) -> object:
        size = file_details(self.path, self.storage_options).get("size")
        with WindowedContent(self.raw_source) as content:
            head = content.read_at(_DIGESTED_BYTES, 0)
            if content.failure is not None:
                raise content.failure
        return [size, xxhash.xxh3_64_hexdigest(head)]
