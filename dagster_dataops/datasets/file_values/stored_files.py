"""`StoredFiles`: the files below a root that operators made, and the names of files in results."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from dagster_dataops.datasets.file_values.file_keeper import name_of_content
from dagster_dataops.datasets.published_files import is_result
from dagster_dataops.foundation.places.bucket import LocalFile, Location
from dagster_dataops.foundation.places.opening import opened
from dagster_dataops.foundation.places.range_source import expect, read_blocks, size_of

_NAME: Final = re.compile(rb"files/([0-9a-f]{2})/([0-9a-f]{62})")
_NAME_BYTES: Final = len(name_of_content("0" * 64))
BLOCK_BYTES: Final = 8 << 20


class StoredFile(NamedTuple):
    """A stored file, or a draft that a kill has left; the name is that below the root."""

    name: str
    size_bytes: int


class StoredFiles(ABC):
    """The files below a root that operators made."""

    @abstractmethod
    def check_root(self) -> None:
        """Check that there is such a root.

        Raises:
            ConfigurationError: There is none.
        """

    @abstractmethod
    def check_unused(self, grace_seconds: float) -> None:
        """Check that no run is using the root.

        Raises:
            FolderLockedError: A run is using it.
        """

    @abstractmethod
    def state(self) -> Any:
        """Return what differs if anything else below the root was changed."""

    @abstractmethod
    def named(self) -> set[str]:
        """Return the digests of the files that anything else below the root names."""

    @abstractmethod
    def formatted(self) -> Iterator[tuple[bytes, LocalFile]]:
        """Yield content and place of the files that note a format.

        They are the manifests of results, of those that are being published and of kept versions,
        and the journals of unfinished runs, of which the content may be the beginning alone.
        """

    @abstractmethod
    def stored_before(self, grace_seconds: float) -> Iterator[StoredFile]:
        """Yield the stored files and drafts that are older than the grace period."""

    @abstractmethod
    def deleted(self, files: list[StoredFile], grace_seconds: float) -> list[StoredFile]:
        """Delete files, but those that a run has just stored again; return the deleted ones."""


def digest_of(name: str) -> str:
    """Return the hexadecimal digits by which records name a stored file."""
    return "".join(name.split("/")[-2:])


def is_name_of_content(name: str) -> bool:
    """Return whether a name below the root is that of a stored file."""
    return _NAME.fullmatch(name.encode("utf-8", "surrogateescape")) is not None


def digests_in(blocks: Iterable[bytes]) -> set[str]:
    """Return the digests of the files that are named in the bytes of some blocks together."""
    named: set[str] = set()
    rest = b""
    for block in blocks:
        text = rest + block
        named.update((match[1] + match[2]).decode() for match in _NAME.finditer(text))
        rest = text[-_NAME_BYTES:]
    return named


def text_blocks(location: Location) -> Iterator[bytes]:
    """Yield the text of a file with the name of a compressed one, in blocks.

    A file that another program compressed is yielded as it is.

    Raises:
        InputError: It is a result that is damaged or was cut off, or an object that was replaced.
        OSError: It cannot be read.
    """
    with opened(location) as source:
        if is_result(location.name):
            from dagster_dataops.foundation.places.framed_file import check_frames  # an extra

            check_frames(source, str(location))
        expect(source, 0, size_of(source))
        yield from read_blocks(source, BLOCK_BYTES)
