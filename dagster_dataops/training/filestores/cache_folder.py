"""The folder of a file cache, which all processes of a machine share.

Each file lies under the digest of its store and of its name, and ends with its source and a
checksum, so that a damaged file counts as missing. It is written beside its place and renamed.
The account holds the bytes and the number of all files. Files change only while it is locked, so
that a count finds each file once and whole. Room is added to it before a file is written and
subtracted after one was deleted. So a killed process leaves an account that is too large, never one
that is too small; the next eviction corrects it.

A file that does not fit into memory arrives in a part beside the files, which is locked as long as
its process lives. Such parts are not in the account.
"""

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.foundation.concurrency.file_lock import lock_at_once, locked, unused
from dagster_dataops.training.filestores.source_info import SourceInfo

_VERSION: Final = "v1"
_ACCOUNT: Final = struct.Struct("<QQ")
_TAIL: Final = struct.Struct("<IQ8s")  # bytes of the source, checksum, mark
_MARK: Final = b"DDOCACHE"
_DRAFT: Final = ".tmp-"
_PART: Final = ".part-"
_BLOCK_BYTES: Final = 1 << 20
_SPARED: Final = 0.9  # share of the limits that an eviction leaves in use


class _CachedFile(NamedTuple):
    used: float
    size: int
    path: str


class KeptFile:
    """A file of a cache, of ``size`` bytes, that is read by ranges."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.size = file, size

    def read(self, size: int, offset: int) -> bytes:
        """Return ``size`` bytes from ``offset``; fewer only at the end."""
        return os.pread(self._file.fileno(), max(0, min(size, self.size - offset)), offset)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ArrivingFile:
    """A file that is written to an existing folder of a cache in parts."""

    def __init__(self, folder: str) -> None:
        self.path = f"{folder}/{_PART}{os.urandom(8).hex()}"
        self._file = open(self.path, "xb")  # noqa: PTH123,SIM115 - closed by `end`
        lock_at_once(self._file.fileno())
        self._digest = xxhash.xxh3_64()

    def write(self, block: bytes) -> bool:
        """Add bytes; return ``True``."""
        self._file.write(block)
        self._digest.update(block)
        return True

    def finish(self, source: SourceInfo) -> None:
        """Write the source and the checksum."""
        self._file.write(_tail(source, self._digest.intdigest()))
        self._file.flush()

    def end(self) -> None:
        """Close the file, and delete it unless it was renamed."""
        with contextlib.suppress(OSError):
            self._file.close()
        Path(self.path).unlink(missing_ok=True)


class CacheFolder:
    """The files of a cache."""

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

        ``kept`` returns the paths of files to delete last. An `OSError` says that it cannot be
        written.
        """
        wrapped = _wrapped(data, source)
        if not self.has_room_for(len(wrapped)):
            return False
        self._put(path, len(wrapped), lambda: _write(path, wrapped), kept)
        return True

    def has_room_for(self, size: int) -> bool:
        """Return whether a file of ``size`` bytes may be in the cache."""
        return size <= self._max_bytes and self._max_count >= 1

    def _put(
        self, path: str, size: int, write: Callable[[], None], kept: Callable[[], set[str]]
    ) -> None:
        """Put a file in its place, after others were deleted to make room."""
        with self._account() as account:
            if account.exceeds(size, self._max_bytes, self._max_count):
                self._evict(account, size, kept())
            replaced = _size(path)
            account.add(size, 1)
            try:
                write()
            except OSError:
                account.add(-size, -1)
                raise
            if replaced is not None:  # another process wrote the same file
                account.add(-replaced, -1)

    def opened(self, path: str) -> KeptFile | None:
        """Return a file for reads by ranges; ``None`` if it is missing or damaged.

        The checksum is compared once in a process.
        """
        try:
            file = open(path, "rb", buffering=0)  # noqa: PTH123,SIM115 - the caller closes it
        except OSError:
            return None
        size = None
        with contextlib.suppress(OSError):
            os.utime(file.fileno())
            size = _size_of_content(path, os.fstat(file.fileno()).st_ino)
        if size is None:
            file.close()
            return None
        return KeptFile(file, size)

    def arriving(self, path: str) -> ArrivingFile:
        """Return a new file that is written in parts; then call `keep`, and its ``end`` always."""
        folder = path.rpartition("/")[0]
        Path(folder).mkdir(parents=True, exist_ok=True)
        return ArrivingFile(folder)

    def keep(
        self, path: str, file: ArrivingFile, source: SourceInfo, kept: Callable[[], set[str]]
    ) -> bool:
        """Put a file that has arrived in its place; ``False`` if there is no room. See `save`."""
        file.finish(source)
        size = Path(file.path).stat().st_size
        if not self.has_room_for(size):
            return False
        self._put(path, size, lambda: os.replace(file.path, path), kept)  # noqa: PTH105 - texts
        return True

    def delete(self, path: str) -> None:
        """Delete a file. Readers that have opened it go on."""
        with contextlib.suppress(OSError), self._account() as account:
            size = Path(path).stat().st_size
            Path(path).unlink()
            account.add(-size, -1)

    @contextmanager
    def _account(self) -> Iterator["_Account"]:
        """Lock the account and the files."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "account", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with locked(descriptor):
                yield _Account(descriptor)
        finally:
            os.close(descriptor)

    def _evict(self, account: "_Account", size: int, kept: set[str]) -> None:
        """Delete the files that were used least recently until there is room for ``size`` bytes."""
        files = sorted(self._files(), key=lambda file: (file.path in kept, file.used))
        account.set(sum(file.size for file in files), len(files))
        if not account.exceeds(size, self._max_bytes, self._max_count):
            return
        max_bytes, max_count = int(self._max_bytes * _SPARED), int(self._max_count * _SPARED)
        for file in files:
            enough = not account.exceeds(size, max_bytes, max_count)
            fits = not account.exceeds(size, self._max_bytes, self._max_count)
            if enough or (fits and file.path in kept):
                return
            Path(file.path).unlink(missing_ok=True)
            account.add(-file.size, -1)

    def _files(self) -> Iterator[_CachedFile]:
        """Yield the files; delete drafts, which killed processes left behind."""
        for folder in os.scandir(self._folder):
            for entry in os.scandir(folder) if folder.is_dir() else ():
                if entry.name.startswith(_DRAFT):
                    Path(entry.path).unlink(missing_ok=True)
                    continue
                if entry.name.startswith(_PART):
                    _delete_unused(entry.path)
                    continue
                with contextlib.suppress(FileNotFoundError):  # deleted by hand
                    status = entry.stat()
                    yield _CachedFile(status.st_mtime, status.st_size, entry.path)


class _Account:
    """The bytes and the number of all files, written to its file with each change."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        encoded = os.pread(descriptor, _ACCOUNT.size, 0)
        known = len(encoded) == _ACCOUNT.size
        # An account that is missing or torn forces a count.
        self.bytes, self.count = _ACCOUNT.unpack(encoded) if known else (2**63, 2**63)

    def add(self, size: int, count: int) -> None:
        """Add a file, or subtract it."""
        self.set(max(0, self.bytes + size), max(0, self.count + count))

    def set(self, size: int, count: int) -> None:
        """Replace both numbers."""
        self.bytes, self.count = size, count
        os.pwrite(self._descriptor, _ACCOUNT.pack(size, count), 0)

    def exceeds(self, size: int, max_bytes: int, max_count: int) -> bool:
        """Return whether another file of ``size`` bytes would exceed the limits."""
        return bool(self.bytes + size > max_bytes or self.count + 1 > max_count)


def _write(path: str, wrapped: bytes) -> None:
    """Write a file beside its place, and rename it."""
    folder, _, name = path.rpartition("/")
    draft = Path(f"{folder}/{_DRAFT}{name}")
    try:
        Path(folder).mkdir(exist_ok=True)
        draft.write_bytes(wrapped)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _delete_unused(path: str) -> None:
    """Delete a part of a file whose process was killed."""
    with contextlib.suppress(OSError), unused(Path(path)) as free:
        if free:
            Path(path).unlink()


def _wrapped(data: bytes, source: SourceInfo) -> bytes:
    return data + _tail(source, xxhash.xxh3_64_intdigest(data))


def _tail(source: SourceInfo, digest_of_data: int) -> bytes:
    """Return what follows the content of a file."""
    described = orjson.dumps(dict(source))
    digest = xxhash.xxh3_64_intdigest(described, digest_of_data)
    return described + _TAIL.pack(len(described), digest, _MARK)


@lru_cache(maxsize=1024)
def _size_of_content(path: str, _inode: int) -> int | None:
    """Return the size of the content of a file; ``None`` if it is damaged."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a text
        end = file.seek(0, os.SEEK_END) - _TAIL.size
        if end < 0:
            return None
        length, digest, mark = _TAIL.unpack(os.pread(file.fileno(), _TAIL.size, end))
        size = end - length
        if mark != _MARK or size < 0:
            return None
        hashed = xxhash.xxh3_64()
        for start in range(0, size, _BLOCK_BYTES):
            block = os.pread(file.fileno(), min(_BLOCK_BYTES, size - start), start)
            hashed.update(block)
        described = os.pread(file.fileno(), length, size)
    return size if xxhash.xxh3_64_intdigest(described, hashed.intdigest()) == digest else None


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
