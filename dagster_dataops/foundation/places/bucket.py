"""`StoreBucket`: a bucket of an object store. `BucketFile`: an object in it."""

import os
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.frozen import frozen
from dagster_dataops.foundation.override import override

_SCHEMES: Final = ("s3", "gs", "az", "abfs", "memory")
_STORE: Final = rf"(?i)({'|'.join(_SCHEMES)}):/{{1,3}}([^/@]+)/*(.*)"
VERSIONS: Final = ".versions"  # the folder of published files below that of their node
_VERSION: Final = (  # the key of a published file, or of the list of its parts
    rf"(.*)/\{VERSIONS}/[^/]+/(?:([^/]+\.jsonl)\.parts|(.+))"
)
COPIES: Final = ".copies"  # in the folder of a bucket: copies of inputs
_PLAIN: Final = ("endpoint", "region")  # options that are no secrets


@frozen(eq=True, kw_only=False)
class StoreBucket:
    """A bucket of an object store.

    Attributes:
        url: Its URL, without a prefix: ``s3://bucket``.
        folder: The folder of this machine for copies of its objects.
        options: Options of the store, over those of the environment. A pickle holds only those
            that are no secrets.
        reached: Whether another process of the run has reached it.
    """

    url: str
    folder: Path
    options: Mapping[str, str] = field(hash=False, repr=False)
    reached: bool = field(default=False, compare=False)

    @property
    def reached_by_others(self) -> bool:
        """Whether other processes reach the same objects."""
        return not self.url.startswith("memory:")

    def key_of(self, path: Path) -> str:
        """Return the key of a path in the folder of this bucket; empty for the folder itself."""
        key = path.relative_to(self.folder).as_posix()
        return "" if key == "." else key

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        plain = {name: self.options[name] for name in _PLAIN if name in self.options}
        return StoreBucket, (self.url, self.folder, plain)


@frozen(eq=True, kw_only=False)
class BucketFile:
    """An object in a bucket. Its text is its URL."""

    bucket: StoreBucket
    key: str

    @override
    def __str__(self) -> str:
        """Return the URL, as users know it: without the version of a published file."""
        return f"{self.bucket.url}/{_without_version(self.key) or self.key}"

    @property
    def name(self) -> str:
        """The name of the file: the last part of the key."""
        return (_without_version(self.key) or self.key).rpartition("/")[2]

    @property
    def published(self) -> "CopiedFile | None":
        """The copy of a published file in the working copy of its node; else ``None``."""
        name = _without_version(self.key)
        return CopiedFile(self.bucket, self.bucket.folder / name) if name else None

    @property
    def copy(self) -> Path:
        """The path for a copy on this machine."""
        return self.bucket.folder / COPIES / self.key


def _without_version(key: str) -> str:
    """Return the key of a published file without its version; empty for another object."""
    match = re.fullmatch(_VERSION, key)
    return f"{match[1]}/{match[2] or match[3]}" if match else ""


@frozen(eq=True, kw_only=False)
class CopiedFile:
    """The copy of a file or folder of a bucket on this machine. Its text is the URL.

    Attributes:
        bucket: The bucket.
        path: The path of the copy; the file need not be there.
    """

    bucket: StoreBucket
    path: Path

    @override
    def __str__(self) -> str:
        """Return the URL, as users know it."""
        key = self.bucket.key_of(self.path).removeprefix(f"{COPIES}/")
        return f"{self.bucket.url}/{key}"

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    def with_name(self, name: str) -> "CopiedFile":
        """Return the location of another file in the same folder."""
        return CopiedFile(self.bucket, self.path.with_name(name))

    def __fspath__(self) -> str:
        """Return the path of the copy."""
        return str(self.path)


LocalFile: TypeAlias = Path | CopiedFile
"""Where a file of this machine is."""

Location: TypeAlias = LocalFile | BucketFile
"""Where a file is: on this machine, or an object in a bucket."""


def local_path(location: Location) -> Path | None:
    """Return the path of a file of this machine; ``None`` for an object."""
    if isinstance(location, BucketFile):
        return None
    return location.path if isinstance(location, CopiedFile) else location


def published_file(location: Location) -> LocalFile | None:
    """Return the location of a file on this machine; of a published object, that of its copy.

    Returns:
        The location; the file need not exist. ``None`` for an object that no node published.
    """
    return location.published if isinstance(location, BucketFile) else location


class BucketPrefix(NamedTuple):
    """What a URL names: a bucket, and a prefix of keys without slashes at its ends."""

    bucket: StoreBucket
    prefix: str

    @property
    def folder(self) -> Path:
        """The folder with the working copies of the nodes below the prefix."""
        return self.bucket.folder / self.prefix if self.prefix else self.bucket.folder


def prefix_of(
    setting: str, url: object, options: Mapping[str, str], scratch: Callable[[], Path]
) -> BucketPrefix | None:
    """Return the bucket and the prefix of a URL; ``None`` for any other text.

    Args:
        setting: Name of the setting, for errors.
        url: The text, such as ``s3://bucket/prefix``.
        options: Options of the object store.
        scratch: Returns the folder for copies of objects.

    Raises:
        ConfigurationError: The URL has the parts ``.`` or ``..``, or NUL characters.
    """
    match = re.fullmatch(_STORE, str(url)) if url else None
    if match is None:
        return None
    scheme, name, prefix = match[1].lower(), match[2], match[3].strip("/")
    if any(part in {".", ".."} for part in (name, *prefix.split("/"))):
        raise ConfigurationError(setting, str(url), "a URL without the parts . and ..")
    if "\0" in f"{name}{prefix}":
        raise ConfigurationError(setting, str(url), "a URL without NUL characters")
    server = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", "")
    mark = f"{zlib.crc32(server.encode()):08x}" if server else ""
    folder = scratch() / scheme / (f"{name}@{mark}" if mark else name)
    return BucketPrefix(StoreBucket(f"{scheme}://{name}", folder, dict(options)), prefix)


def url_of_copy(path: Path, scratch: Callable[[], Path]) -> str | None:
    """Return the URL of a folder of results whose working copy has a path.

    Args:
        path: An absolute path.
        scratch: Returns the path of the folder for copies of objects.

    Returns:
        The URL; ``None`` for a path that is not in a working copy, or in a copy of an input.
    """
    if set(path.parts).isdisjoint(_SCHEMES) or not path.is_relative_to(folder := scratch()):
        return None
    scheme, *names = path.relative_to(folder).parts or ("",)
    if scheme not in _SCHEMES or not names or COPIES in names:
        return None
    return f"{scheme}://{'/'.join([names[0].partition('@')[0], *names[1:]])}"


def facts_of_location(location: Location) -> tuple[str, tuple[Any, ...]]:
    """Return what a process of the same run needs to open a file.

    Returns:
        A path or a key, and the facts about the bucket, which JSON can hold; none for a path.
    """
    if not isinstance(location, BucketFile):
        return os.fspath(location), ()
    bucket = location.bucket
    return location.key, (bucket.url, str(bucket.folder), dict(bucket.options))


def location_of(name: str, bucket: tuple[Any, ...]) -> Location:
    """Return the location that `facts_of_location` told; its bucket was reached then."""
    if not bucket:
        return Path(name)
    url, folder, options = bucket
    return BucketFile(StoreBucket(url, Path(folder), options, reached=True), name)
