"""`ResultStore`: objects of a bucket, as results and checkpoints need them.

Results on a local disk need no store: a node's folder is the place of its files. For results in a
bucket the node's folder is a working copy, and the store has the truth. `object_store` is the
implementation for S3, GCS and Azure.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class Version(NamedTuple):
    """Identity of the content of an object: its entity tag, and its version if it has one."""

    tag: str
    number: str = ""


class Status(NamedTuple):
    """Size and version of an object."""

    size: int
    version: Version


class ListedObject(NamedTuple):
    """An object as a listing tells it.

    Attributes:
        status: Its size and version.
        modified: When it was written last, in seconds since 1970 by the clock of the store.
    """

    status: Status
    modified: float


class ConflictError(Exception):
    """An object was there already, or was not in the expected version: another run is at work."""


class Upload(Protocol):
    """An object that is written in parts; there is none before `finish`."""

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            StorageError: The store cannot be reached.
        """

    def finish(self) -> None:
        """Make the object.

        Raises:
            StorageError: The store cannot be reached; there may be an object or not.
        """

    def abort(self) -> None:
        """Delete the parts, as far as the store can be reached; safe to call twice."""


class ReadableStore(Protocol):
    """Objects by key, to be read. Every method may raise a `StorageError`.

    Attributes:
        url: The URL of the bucket, for errors.
    """

    url: str

    def read(self, key: str) -> tuple[bytes, Version] | None:
        """Return content and version of an object; ``None`` if it does not exist."""

    def read_range(self, key: str, start: int, length: int, version: Version | None) -> bytes:
        """Return bytes of an object; fewer only at its end.

        Args:
            key: Its key.
            start: The first byte, which the object has.
            length: How many bytes.
            version: The version that it must have; ``None`` for any.

        Raises:
            ConflictError: It has another version, or does not exist.
        """

    def read_start(self, key: str, length: int) -> tuple[Status, bytes] | None:
        """Return size and version of an object, and its first bytes; ``None`` if there is none."""

    def read_on(self, key: str, start: int, end: int, version: Version) -> Iterator[bytes]:
        """Yield the bytes [start, end) of an object in pieces, as they arrive, by one request.

        An answer that breaks off is a `StorageError`; the caller asks for the rest.

        Raises:
            ConflictError: It has another version, or does not exist.
        """

    def status(self, key: str) -> Status | None:
        """Return size and version of an object; ``None`` if it does not exist."""


class ResultStore(ReadableStore, Protocol):
    """Objects by key. Every method may raise a `StorageError`.

    Attributes:
        shared: Whether other processes reach the same objects.
    """

    shared: bool = True

    def create(self, key: str, data: bytes) -> Version:
        """Create an object, in one step.

        Raises:
            ConflictError: It exists.
        """

    def replace(self, key: str, data: bytes, seen: Version | None) -> Version:
        """Replace an object, in one step.

        Raises:
            ConflictError: It has another version.
        """

    def put(self, key: str, data: bytes, *, in_parts: bool = False) -> None:
        """Write an object under a key that only this run uses.

        Args:
            key: The key.
            data: Its content.
            in_parts: Whether to upload it in parts even if it is small.
        """

    def upload(self, key: str, path: Path) -> None:
        """Write a file under a key that only this run uses, in parts if it is large."""

    def begin_upload(self, key: str, part_bytes: int) -> Upload:
        """Begin an object under a key that only this run uses, whose size is not known.

        Args:
            key: The key.
            part_bytes: The size of a part; some of them are in memory. Stores take 10,000.
        """

    def names(self, prefix: str) -> list[str]:
        """Return the keys of the objects below a prefix, sorted."""

    def listed(self, prefix: str) -> dict[str, ListedObject]:
        """Return the objects below a prefix by their keys; all of the bucket if it is empty."""

    def names_in(self, prefix: str) -> list[str]:
        """Return the keys of the objects directly below a prefix, sorted."""

    def remove(self, keys: Iterable[str]) -> None:
        """Delete objects; missing ones are no error."""
