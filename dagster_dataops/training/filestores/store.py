"""`FileStore`: files by name."""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from dagster_dataops.errors import AuxFileMissingError, PathEscapeError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.confined_names import is_plain
from dagster_dataops.streams.files.remote import is_url
from dagster_dataops.training.filestores.energon.media_metadata import metadata_of
from dagster_dataops.training.filestores.energon.media_table import read_media_facts
from dagster_dataops.training.filestores.source_info import SourceInfo, add_source_info

_MAX_COMPARED: Final = 10_000  # names that are compared with a missing one


class FileWindow(NamedTuple):
    """A file in a shard, read by ranges.

    Attributes:
        size: The number of bytes.
        read_at: Returns ``size`` bytes from ``offset``; fewer only at the end.
        shard: The path or URL of the shard.
        first: The first byte of the file in the shard.
        is_unchanged: Tells whether the shard is the one that it was.
    """

    size: int
    read_at: Callable[[int, int], bytes]
    shard: str
    first: int
    is_unchanged: Callable[[], bool]


class FileStore(ABC):
    """Files by name: tar shards, a folder or a jsonl file, on this machine or by URL.

    A store can be pickled, and used by several threads. Each process opens files when it first
    reads them.

    Attributes:
        path: The absolute path or the URL of the store.
        title: The name of the store in messages; its path by default.
    """

    path: str
    title: str | None = None

    @abstractmethod
    def read(self, name: str) -> tuple[bytes, SourceInfo]:
        """Return the content of a file, and where it was read.

        Raises:
            AuxFileMissingError: There is no such file.
            PathEscapeError: The name leaves the store.
            IndexOutdatedError: The store was changed after it was indexed.
            StreamSourceError: The file cannot be read.
        """

    def place(self, name: str) -> FileWindow | str | None:  # noqa: ARG002
        """Return where a file can be read by ranges.

        Args:
            name: The name of the file in the store.

        Returns:
            Its own path or URL, or its window in a shard; ``None`` if it must be read whole.

        Raises:
            AuxFileMissingError: There is no such file.
            PathEscapeError: The name leaves the store.
            IndexOutdatedError: The store was changed after it was indexed.
            StreamSourceError: The file cannot be read.
        """
        return None

    @abstractmethod
    def names(self) -> Iterator[str]:
        """Yield the names of all files, in sorted order."""

    @abstractmethod
    def version(self) -> str:
        """Return a digest that changes when files of the store change; used by caches."""

    def get(self, name: str, sample: MutableMapping[str, Any] | None = None) -> bytes:
        """Return the content of a file.

        Args:
            name: The name of the file in the store.
            sample: The sample that needs the file; its ``__sources__`` record the file.

        Raises:
            AuxFileMissingError: There is no such file; also a KeyError.
            PathEscapeError: The name leaves the store; also a ValueError.
            IndexOutdatedError: The store was changed after it was indexed.
            StreamSourceError: The file cannot be read.
        """
        data, source = self.read(name)
        if sample is not None:
            add_source_info(sample, source)
        return data

    def value(self, name: str, data: bytes) -> Any:  # noqa: ARG002
        """Return what `get` returns of the bytes of a file: the bytes themselves."""
        return data

    @property
    def undecoded(self) -> "FileStore":
        """The store that returns bytes: this one."""
        return self

    @property
    def decoding(self) -> str | None:
        """The ``image_decode`` of the values that `get` returns; ``None`` for bytes."""
        return None

    def get_media_metadata(self, name: str) -> Any:
        """Return the facts of a media file that were found when the store was prepared.

        Args:
            name: The name of the file in the store.

        Returns:
            An `ImageMetadata` or `AVMetadata`.

        Raises:
            AuxFileMissingError: There is no such file; also a KeyError.
            KeyError: The store was prepared without media metadata, or the file is damaged, or
                no such medium.
        """
        name = self.full_name(name)
        path = Path(self.undecoded.path, ".nv-meta", "index.sqlite")
        facts = None if is_url(self.path) else read_media_facts(path, name)
        if facts is None:
            if name not in self:
                raise self.missing(name)
            msg = (
                f"{self.shown} has no media metadata of {name!r}: the store was prepared without "
                "prepare_energon(folder, media_metadata=True), or the file is damaged, or neither "
                "an image nor audio nor video by its suffix"
            )
            raise KeyError(msg)
        return metadata_of(facts)

    def full_name(self, name: str) -> str:
        """Return the complete name of a file: other than ``name`` only for own parts of samples."""
        return name

    def get_path(self) -> str:
        """Return the path or URL of the store."""
        return self.path

    def named(self, title: str) -> Self:
        """Give the store a name for messages, and return it."""
        self.title = title
        return self

    @property
    def shown(self) -> str:
        """The store in messages."""
        return self.path if self.title is None else f"{self.title} ({self.path})"

    def confined(self, name: str) -> str:
        """Return a name in its plain form: relative, with ``/``, without ``.`` and ``..``.

        Raises:
            PathEscapeError: The name is absolute, leads out of the store, or has a NUL in it.
        """
        parts = [part for part in name.split("/") if part not in {"", "."}]
        if name.startswith("/") or not all(map(is_plain, parts or [""])):
            raise PathEscapeError(self.shown, name)
        return "/".join(parts)

    def missing(self, name: str) -> AuxFileMissingError:
        """Return the error for a file that does not exist.

        Raises:
            PathEscapeError: The name leaves the store.
        """
        self.confined(name)
        near = difflib.get_close_matches(name, islice(self.names(), _MAX_COMPARED), 1, 0.5)
        return AuxFileMissingError(self.shown, name, len(self), (near or [""])[0], self.unread())

    def unread(self) -> str:
        """Return the fault of a shard of which not all was read; empty if there is none."""
        return ""

    def close(self) -> None:  # noqa: B027 - stores without open files need none
        """Close all files; the next read opens them again."""

    def __getitem__(self, name: str) -> tuple[bytes, SourceInfo]:
        """Return the content of a file, and where it was read."""
        return self.read(name)

    def __contains__(self, name: object) -> bool:
        return name in set(self.names())

    def __iter__(self) -> Iterator[str]:
        return self.names()

    def __len__(self) -> int:
        return sum(1 for _ in self.names())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WrappingStore(FileStore):
    """A file store that reads the files of another one, ``inner``."""

    def __init__(self, inner: FileStore) -> None:
        self.path, self.title = inner.path, inner.title
        self.inner = inner

    @override
    def read(self, name: str) -> tuple[bytes, SourceInfo]:
        return self.inner.read(name)

    @override
    def full_name(self, name: str) -> str:
        return self.inner.full_name(name)

    @override
    def names(self) -> Iterator[str]:
        return self.inner.names()

    @override
    def version(self) -> str:
        return self.inner.version()

    @override
    def close(self) -> None:
        self.inner.close()

    @override
    def __contains__(self, name: object) -> bool:
        return name in self.inner

    @override
    def __len__(self) -> int:
        return len(self.inner)
