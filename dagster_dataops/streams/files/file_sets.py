"""`FileSet`: the files of a reader, given as paths, patterns, folders or a list of these."""

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import xxhash

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError, StreamSourceError
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.streams.files.decompression import KINDS
from dagster_dataops.streams.files.hive_partitions import partitions
from dagster_dataops.streams.files.listing import (
    files_below,
    is_listed,
    natural_key,
    relative_path,
)
from dagster_dataops.streams.files.locations import Location, compression_of
from dagster_dataops.streams.files.remote import file_system, is_url, list_urls, source_error

GivenPath: TypeAlias = str | os.PathLike[str]
GivenPaths: TypeAlias = GivenPath | Iterable[GivenPath]

INFER: Final = "infer"
_MAX_DIGESTED_FILES: Final = 1000  # files identified by content; the others by size
_HIDDEN: Final = (".", "_")  # prefixes of the hidden files that file systems and writers create


@dataclass(frozen=True)
class FileSet:
    """A set of files as it was specified. It is resolved each time it is read.

    Attributes:
        paths: Paths, URLs, patterns and folders.
        compression: The compression of the files; ``infer`` uses the suffix of each name.
        storage_options: The arguments of fsspec's file systems.
        pattern: A pattern for the paths to keep; see `list_files`.
        hive: Whether folders such as ``lang=de``, below a given folder or in a pattern, are
            columns of the records.
    """

    paths: tuple[str, ...]
    compression: str | None = INFER
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    pattern: str | None = None
    hive: bool = False

    @classmethod
    def of(
        cls,
        stage: str,
        paths: GivenPaths,
        compression: str | None = INFER,
        storage_options: Mapping[str, Any] | None = None,
        *,
        hive: bool = False,
    ) -> "FileSet":
        """Return the file set for the arguments of the reader ``stage``."""
        single = isinstance(paths, (str, os.PathLike))
        listed: list[Any] = [paths] if single else list(paths)  # type: ignore[arg-type]
        for path in listed:
            if not isinstance(path, (str, os.PathLike)):
                reason = f"a path is {path!r}; it must be a text or a pathlib.Path"
                raise StreamArgumentError(stage, reason)
        if not listed:
            raise StreamDefinitionError(stage, "no path was given")
        if compression not in {None, INFER, *KINDS}:
            reason = f"compression is {compression!r}; it must be 'infer', None or one of {KINDS}"
            raise StreamDefinitionError(stage, reason)
        names = tuple(os.fspath(path) for path in listed)
        return cls(names, compression, dict(storage_options or {}), hive=hive)

    def locations(self) -> list[Location]:
        """Return the files in the given order; those of a pattern or folder in natural order.

        Raises:
            StreamSourceError: A pattern or folder has no files or cannot be listed.
        """
        paths = [(path, pattern) for pattern in self.paths for path in self._resolve(pattern)]
        if self.pattern is not None:
            paths = [path for path in paths if fnmatch.fnmatchcase(path[0], self.pattern)]
        locations = [self._location(path) for path, _ in paths]
        if not self.hive:
            return locations
        columns = partitions(_folders_below(path, pattern) for path, pattern in paths)
        return [
            replace(location, partition=names) if names else location
            for location, names in zip(locations, columns, strict=True)
        ]

    def plain_files(self) -> list[str] | None:
        """Return the paths if all files are local, read by ranges and without columns of folders.

        Else return ``None``. The files are listed now. A listing error gives ``None`` and is raised
        again by reading.
        """
        if any(map(is_url, self.paths)):
            return None
        try:
            locations = self.locations()
        except StreamSourceError:
            return None
        is_plain = all(location.has_ranges and not location.partition for location in locations)
        return [location.path for location in locations] if is_plain else None

    def _location(self, path: str) -> Location:
        packed = compression_of(path) if self.compression == INFER else self.compression
        return Location(path, packed, self.storage_options)

    def _resolve(self, text: str) -> list[str]:
        wild = _is_wild(text)
        if wild:
            paths = self._matching(text)
        elif self._is_folder(text):
            paths = [path for path in self._below(text) if not _is_hidden(path, text)]
        else:
            return [text]
        if not paths:
            reason = "matches no file" if wild else "is a folder without files"
            raise StreamSourceError(text, reason)
        return sorted(paths, key=natural_key)

    def _matching(self, path: str) -> list[str]:
        if is_url(path):
            return list_urls(path, self.storage_options, wild=True)
        return [path for path in glob.glob(path, recursive=True) if is_listed(Path(path))]  # noqa: PTH207 - any text

    def _is_folder(self, text: str) -> bool:
        if not is_url(text):
            return Path(text).is_dir()
        if text.startswith(("http://", "https://")):
            return text.endswith("/")  # any other HTTP address is one file
        system, path = file_system(text, self.storage_options)
        try:
            return bool(system.isdir(path))
        except Exception as error:
            raise source_error(text, error) from error

    def _below(self, path: str) -> Iterator[str]:
        if is_url(path):
            yield from list_urls(path, self.storage_options)
        else:
            yield from map(str, files_below(Path(path)))

    def identity(self, *, some: bool = False) -> object:
        """Return a value that identifies the content of the files.

        Args:
            some: Whether it is enough that one of them can be read.

        Raises:
            StreamSourceError: The files cannot be listed or read.
        """
        return identity(self.locations(), some=some)


def identity(locations: list[Location], *, some: bool = False) -> object:
    """Return a value that identifies the content of some files.

    Args:
        locations: The files.
        some: Whether it is enough that one of them can be read.

    Raises:
        StreamSourceError: They cannot be read.
    """
    columns = [dict(location.partition) for location in locations]
    content = _identity_of_content(locations, some=some)
    return [content, digest(columns)] if any(columns) else content


def _identity_of_content(locations: list[Location], *, some: bool) -> object:
    if len(locations) == 1:
        return locations[0].identity()
    step = -(-len(locations) // _MAX_DIGESTED_FILES)
    seen, failures = xxhash.xxh3_64(), 0
    for number, location in enumerate(locations):
        try:
            seen.update(_identity_of_one(location, by_content=number % step == 0))
        except StreamSourceError:
            failures += 1
            if not some or failures == len(locations):
                raise
            seen.update(b"unreadable,")
    return [len(locations), seen.hexdigest()]


def _identity_of_one(location: Location, *, by_content: bool) -> bytes:
    if by_content:
        return digest(location.identity()).encode()
    return b"" if is_url(location.path) else f"{location.size()},".encode()


def _is_wild(path: str) -> bool:
    if not is_url(path):
        return glob.has_magic(path) and not Path(path).exists()
    outer = path.partition("::")[0]
    if outer.startswith(("http://", "https://")):
        return "*" in outer.partition("?")[0]
    return any(sign in outer for sign in "*?[")


def _is_hidden(path: str, folder: str) -> bool:
    return any(part.startswith(_HIDDEN) for part in relative_path(path, folder).split("/"))


def _folders_below(path: str, pattern: str) -> str:
    """Return the folders of a file below a given folder, or below the fixed part of a pattern."""
    if path == pattern:
        return ""
    if _is_wild(pattern):
        fixed = re.split(r"[*?\[]", pattern.partition("::")[0], maxsplit=1)[0]
        pattern = fixed[: fixed.rfind("/") + 1]
    folders, _, _ = relative_path(path, pattern or ".").replace(os.sep, "/").rpartition("/")
    return folders
