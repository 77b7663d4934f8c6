"""The folder of a file cache, which all processes of a machine share.

Each file lies under the digest of its store and of its name, and ends with its source and a
checksum, so that a damaged file counts as missing. It is written beside its place and renamed.
The account holds the bytes and the number of all files. Room is added to it before a file is
written and subtracted after one was deleted. So a killed process leaves an account that is too
large, never one that is too small; the next eviction corrects it.
"""

import contextlib
import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.filestores.source_info import SourceInfo

_VERSION: Final = "v1"
_ACCOUNT: Final = struct.Struct("<QQ")
_TAIL: Final = struct.Struct("<IQ8s")  # bytes of the source, checksum, mark
_MARK: Final = b"DDOCACHE"
_DRAFT: Final = ".tmp-"
_SPARED: Final = 0.9  # share of the limits that an eviction leaves in use


class _File(NamedTuple):
    used: float
    size: int
    path: str


class CacheFolder:
    """The files of a cache.

    Args:
        parent: The folder in which the cache lies.
        max_bytes: The largest number of bytes of all files.
        max_count: The largest number of files.
    """

    def __init__(self, parent: Path, max_bytes: int, max_count: int) -> None:
        self._folder = Path(parent, _VERSION)
        self._max_bytes, self._max_count = max_bytes, max_count

    def path(self, store: str, name: str) -> str:
        """Return the path of a file; ``store`` is the digest of its store."""
        return f"{self._folder}/{store}/{xxhash.xxh3_128_hexdigest(name.encode())}"

    def load(self, path: str) -> tuple[bytes, SourceInfo] | None:
        """Return a file and its source; ``None`` if it is missing or damaged."""
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a third of the time
                content = file.read()
                os.utime(file.fileno())
        except OSError:
            return None
        return _unwrapped(content)

    def save(
        self, path: str, data: bytes, source: SourceInfo, kept: Callable[[], set[str]]
    ) -> bool:
        """Write a file, after others were deleted to make room. Return whether it was written.

        Args:
            path: The path of the file.
            data: Its content.
            source: Its source.
            kept: Returns the paths of files to delete last.

        Raises:
            OSError: The file cannot be written.
        """
        wrapped = _wrapped(data, source)
        size = len(wrapped)
        if size > self._max_bytes or self._max_count < 1:
            return False
        with self._account() as account:
            if account.exceeds(size, self._max_bytes, self._max_count):
                self._evict(account, size, kept())
            account.add(size, 1)
        folder, _, name = path.rpartition("/")
        draft = f"{folder}/{_DRAFT}{os.getpid()}-{get_ident()}-{name}"
        try:
            Path(folder).mkdir(exist_ok=True)
            Path(draft).write_bytes(wrapped)
            replaced = _size(path)
            Path(draft).replace(path)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            self._release(size)
            raise
        if replaced is not None:  # another process wrote the same file
            self._release(replaced)
        return True

    def delete(self, path: str) -> None:
        """Delete a file. Readers that have opened it go on."""
        size = _size(path)
        with contextlib.suppress(OSError):
            Path(path).unlink()
            self._release(size or 0)

    def _release(self, size: int) -> None:
        with self._account() as account:
            account.add(-size, -1)

    @contextmanager
    def _account(self) -> Iterator["_Account"]:
        """Lock the account, and write it afterwards."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "account", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            account = _Account(os.pread(descriptor, _ACCOUNT.size, 0))
            yield account
            os.pwrite(descriptor, account.encoded(), 0)
        finally:
            os.close(descriptor)

    def _evict(self, account: "_Account", size: int, kept: set[str]) -> None:
        """Delete the files that were used least recently until there is room for ``size`` bytes."""
        files, drafts = self._files()
        files.sort(key=lambda one: (one.path in kept, one.used))
        account.bytes = sum(one.size for one in files) + sum(one.size for one in drafts)
        account.count = len(files) + len(drafts)
        if not account.exceeds(size, self._max_bytes, self._max_count):
            return
        max_bytes, max_count = int(self._max_bytes * _SPARED), int(self._max_count * _SPARED)
        for one in files:
            enough = not account.exceeds(size, max_bytes, max_count)
            fits = not account.exceeds(size, self._max_bytes, self._max_count)
            if enough or (fits and one.path in kept):
                return
            with contextlib.suppress(FileNotFoundError):
                Path(one.path).unlink()
            account.add(-one.size, -1)

    def _files(self) -> tuple[list[_File], list[_File]]:
        """Return the files, and those that are being written; delete drafts of dead processes."""
        found: tuple[list[_File], list[_File]] = ([], [])
        for folder in os.scandir(self._folder):
            if folder.is_dir():
                for entry in os.scandir(folder):
                    self._sort_in(entry, found)
        return found

    def _sort_in(self, entry: os.DirEntry[str], found: tuple[list[_File], list[_File]]) -> None:
        is_draft = entry.name.startswith(_DRAFT)
        with contextlib.suppress(FileNotFoundError):
            if is_draft and not _lives(entry.name[len(_DRAFT) :].partition("-")[0]):
                Path(entry.path).unlink()
                return
            status = entry.stat()
            found[is_draft].append(_File(status.st_mtime, status.st_size, entry.path))


class _Account:
    """The bytes and the number of all files."""

    def __init__(self, encoded: bytes) -> None:
        known = len(encoded) == _ACCOUNT.size
        # An account that is missing or torn forces a count.
        self.bytes, self.count = _ACCOUNT.unpack(encoded) if known else (2**63, 2**63)

    def add(self, size: int, count: int) -> None:
        """Add a file, or subtract it."""
        self.bytes, self.count = max(0, self.bytes + size), max(0, self.count + count)

    def exceeds(self, size: int, max_bytes: int, max_count: int) -> bool:
        """Whether another file of ``size`` bytes would exceed the limits."""
        return bool(self.bytes + size > max_bytes or self.count + 1 > max_count)

    def encoded(self) -> bytes:
        """Return the account as bytes."""
        return _ACCOUNT.pack(self.bytes, self.count)


def _wrapped(data: bytes, source: SourceInfo) -> bytes:
    described = orjson.dumps(dict(source))
    digest = xxhash.xxh3_64_intdigest(described, xxhash.xxh3_64_intdigest(data))
    return b"".join([data, described, _TAIL.pack(len(described), digest, _MARK)])


def _unwrapped(content: bytes) -> tuple[bytes, SourceInfo] | None:
    if not content.endswith(_MARK) or len(content) < _TAIL.size:
        return None
    end = len(content) - _TAIL.size
    length, digest, _ = _TAIL.unpack_from(content, end)
    data, described = content[: max(0, end - length)], content[max(0, end - length) : end]
    if xxhash.xxh3_64_intdigest(described, xxhash.xxh3_64_intdigest(data)) != digest:
        return None
    return data, SourceInfo(orjson.loads(described))


def _size(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except OSError:
        return None


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
