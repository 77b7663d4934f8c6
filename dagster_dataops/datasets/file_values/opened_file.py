"""`OpenedFile`: a file that a reference names, open where it is."""

import io
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, cast
from urllib.parse import unquote

from dagster_dataops.datasets.file_values.file_keeper import FILES
from dagster_dataops.datasets.file_values.result_roots import object_at, roots
from dagster_dataops.errors import DataOpsError, FileChangedError, FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.parts import function_of_part
from dagster_dataops.foundation.places.bucket import BucketFile
from dagster_dataops.foundation.places.object_file import ObjectFile, object_exists
from dagster_dataops.streams.files.contents import (
    Content,
    ContentFile,
    PlainContent,
    WindowedContent,
)
from dagster_dataops.streams.files.remote import RemoteFile, file_details, identity_of, is_url

_STORED: Final = re.compile(rf"{FILES}/[0-9a-f]{{2}}/[0-9a-f]{{62}}")
_BLOCK_BYTES: Final = 1 << 20
_LEAST_BYTES: Final = 1 << 16  # of a part that is fetched
_MOST_BYTES: Final = 1 << 22
_LONGEST_PATH: Final = 4096  # characters
_SHOWN: Final = 80  # characters of a longer one
_FIND: Final = "check the path, and that this machine can read it"


class OpenedFile(Content):
    """An open file. Its methods raise a `FileError` if it cannot be read.

    Attributes:
        name: What the reference calls it, for errors.
        size: The number of bytes; ``None`` if its server does not tell it.
        version: Its time of modification, or what its server tells; ``None`` if nothing is told.
        path: Its path on this machine; ``None`` if it has none.
    """

    name: str
    size: int | None
    version: str | None
    path: Path | None = None

    @property
    def state(self) -> list[object]:
        """What differs if the file is replaced, as far as that is known without reading it."""
        return [self.size, self.version]

    def check_unchanged(self) -> None:
        """Check that the file was not replaced since it was opened.

        Raises:
            FileChangedError: It was.
        """

    @override
    def close(self) -> None:
        """Close the file; some have nothing to close."""

    @property
    def is_remote(self) -> bool:
        """Whether each read is a request to a server."""
        return False

    def part(self, size: int, offset: int) -> bytes:
        """Return ``size`` bytes from ``offset``, fewer only at the end; no others are fetched."""
        return self.read_at(size, offset)

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes of the file in order."""
        size = 0
        while block := self.read_at(_BLOCK_BYTES, size):
            yield block
            size += len(block)

    def stream(self) -> BinaryIO:
        """Return a Python file for the bytes; it must not outlive this one."""
        raw = _RemoteParts(self) if self.is_remote else _RawFile(self)
        return cast("BinaryIO", io.BufferedReader(raw, _LEAST_BYTES))


class _ContentFile(OpenedFile):
    """A file of this machine, or by URL."""

    content: Content

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        try:
            data = self.content.read_at(size, offset)
        except DataOpsError as error:
            raise FileError(self.name, _reason(error), _FIND) from error
        if len(data) < size and self.content.failure is not None:
            raise FileError(self.name, _reason(self.content.failure), _FIND)
        return data

    @override
    def close(self) -> None:
        self.content.close()


class FileOfMachine(_ContentFile):
    """A file of this machine."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path
        status = self._status()
        self.size, self.version, self._inode = _facts_of(status)
        self.content = PlainContent(str(path))

    @property
    @override
    def state(self) -> list[object]:
        return [self.size, self.version, self._inode]

    def _status(self) -> os.stat_result:
        try:
            status = os.stat(self.path or "")  # noqa: PTH116 - links are followed
        except OSError as error:
            if len(self.name) > _LONGEST_PATH:  # such as a data URL
                fault = f"has {len(self.name):,} characters, too many for a path"
                remedy = "give a path or a URL; an operator can return bytes as a File"
                raise FileError(f"{self.name[:_SHOWN]}...", fault, remedy) from error
            raise FileError(self.name, f"cannot be read: {error.strerror}", _FIND) from error
        if not stat.S_ISREG(status.st_mode):
            raise FileError(self.name, "is no file", "name a file, not a folder, pipe or device")
        return status

    @override
    def check_unchanged(self) -> None:
        if list(_facts_of(self._status())) != self.state:
            raise FileChangedError(self.name, "was replaced while it was read", "run again")


class MadeFile(FileOfMachine):
    """A file that an operator made, named by the digest of its content.

    Another worker may write it again while it is read, with the same bytes: that is no change. The
    content is checked by the digest of the reference, if that has one.
    """

    @override
    def check_unchanged(self) -> None:
        pass


class RemoteUrlFile(_ContentFile):
    """A file by URL, which is read by ranges."""

    def __init__(self, name: str, url: str, options: Any) -> None:
        self.name, self._url, self._options = name, url, options
        details = self._details()
        size = details.get("size")
        self.size = size if isinstance(size, int) else None
        self.version = _reported(details)
        self.content = WindowedContent(lambda: RemoteFile(url, options))
        self._parts = _FetchedParts(name, url, options)

    @property
    @override
    def is_remote(self) -> bool:
        return True

    @override
    def part(self, size: int, offset: int) -> bytes:
        return self._parts.read(size, offset)

    @override
    def close(self) -> None:
        super().close()
        self._parts.close()

    def _details(self) -> dict[str, Any]:
        try:
            return file_details(self._url, self._options)
        except DataOpsError as error:
            raise FileError(self.name, _reason(error), _FIND) from error

    @override
    def check_unchanged(self) -> None:
        if self.version is not None and _reported(self._details()) != self.version:
            raise FileChangedError(self.name, "was replaced while it was read", "run again")


class ObjectOfStore(OpenedFile):
    """An object of an object store on which results or inputs of the run are."""

    def __init__(self, name: str, file: BucketFile) -> None:
        self.name, self._place = name, file
        self._file = self._opened()
        self.size = self._file.size
        tag = self._file.version.tag
        self.version = f"reported:{tag}" if tag else None

    def _opened(self) -> ObjectFile:
        try:
            return ObjectFile(self._place)
        except DataOpsError as error:
            raise FileError(self.name, _reason(error), _FIND) from error

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        try:
            return self._file.read(offset, max(0, min(size, self._file.size - offset)))
        except (DataOpsError, OSError) as error:
            raise FileError(self.name, _reason(error), _FIND) from error

    @property
    @override
    def is_remote(self) -> bool:
        return True


class MadeObject(ObjectOfStore):
    """An object that an operator made; see `MadeFile`. If it was written again, it is opened anew.

    Many stores give each new object another version, also one with the same bytes.
    """

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        while True:
            try:
                return super().read_at(size, offset)
            except FileError:
                before, self._file = self._file.version, self._opened()
                if before == self._file.version:
                    raise


class _FileInStore(OpenedFile):
    """A file in a store, such as a tar. It is replaced with its store, which has the version."""

    @property
    @override
    def state(self) -> list[object]:
        return [self.version]


class FileOfShard(_FileInStore):
    """A file in a shard, which is read by ranges."""

    def __init__(self, name: str, window: Any) -> None:
        self.name, self._window = name, window
        self.size = window.size
        self.version = self._version()
        self._parts = _FetchedParts(name, window.shard, {})

    def _version(self) -> str | None:
        shard = self._window.shard
        if not self.is_remote:
            return _version_of_store(shard)
        try:
            return _reported(file_details(shard, {}))
        except DataOpsError as error:
            raise FileError(self.name, _reason(error), _FIND) from error

    @property
    @override
    def is_remote(self) -> bool:
        return is_url(self._window.shard)

    @override
    def part(self, size: int, offset: int) -> bytes:
        if not self.is_remote:
            return self.read_at(size, offset)
        window = self._window
        size = min(size, window.size - offset)
        return self._parts.read(size, window.first + offset) if size > 0 else b""

    @override
    def close(self) -> None:
        self._parts.close()

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        try:
            data: bytes = self._window.read_at(size, offset)
        except DataOpsError as error:
            raise FileError(self.name, _reason(error), _FIND) from error
        if len(data) < min(size, self._window.size - offset):
            problem = f"is cut off: its shard ends within its {self._window.size:,} bytes"
            raise FileError(self.name, problem, "restore the shard")
        return data

    @override
    def check_unchanged(self) -> None:
        if not self._window.is_unchanged() or (self.is_remote and self._version() != self.version):
            raise FileChangedError(self.name, "was replaced while it was read", "run again")


class FileOfStore(_FileInStore):
    """A file in a store that is read whole, such as a member of a compressed tar."""

    def __init__(self, name: str, data: bytes, version: str | None) -> None:
        self.name, self._data = name, data
        self.size, self.version = len(data), version

    @override
    def read_at(self, size: int, offset: int) -> bytes:
        return self._data[offset : offset + size]


class _FetchedParts:
    """Parts of a file by URL; no other bytes are fetched. Errors name it as the reference does."""

    def __init__(self, name: str, url: str, options: Mapping[str, Any]) -> None:
        self._name, self._file = name, RemoteFile(url, options, ahead=False)

    def read(self, size: int, start: int) -> bytes:
        """Return ``size`` bytes from ``start``; fewer only at the end."""
        data = b""
        self._file.seek(start)
        try:
            while len(data) < size and (part := self._file.read(size - len(data))):
                data += part
        except DataOpsError as error:
            raise FileError(self._name, _reason(error), _FIND) from error
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _RawFile(ContentFile):
    """A Python file over an open file, read from any position."""

    def __init__(self, file: OpenedFile) -> None:
        super().__init__(file)
        self._file = file

    @override
    def seekable(self) -> bool:
        return True

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        self._at = max(0, offset + (self._end() if start is None else start))
        return self._at

    def _end(self) -> int:
        return self._file.size if self._file.size is not None else len(self._file.read_all())


class _RemoteParts(_RawFile):
    """A Python file over a file of a server, of which little more is fetched than is read.

    A read after a ``seek`` fetches a small part; each read that follows it a part twice as large.
    """

    def __init__(self, file: OpenedFile) -> None:
        super().__init__(file)
        self._part, self._start, self._next = b"", 0, _LEAST_BYTES

    @override
    def readinto(self, buffer: Any, /) -> int:
        end = self._start + len(self._part)
        if not self._start <= self._at < end:
            follows = self._at == end and end > 0
            self._next = min(2 * self._next, _MOST_BYTES) if follows else _LEAST_BYTES
            self._part, self._start = self._file.part(self._next, self._at), self._at
        first = self._at - self._start
        data = self._part[first : first + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def is_stored(name: str) -> bool:
    """Return whether a name is that of a file that an operator made: it tells its content."""
    return _STORED.fullmatch(name) is not None


def open_file(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> OpenedFile:
    """Open the file that a reference names; the caller closes it.

    Args:
        name: Its path, URL, or store and name.
        options: The arguments of fsspec's file system, for a URL.

    Raises:
        FileError: There is no such file, or it cannot be read.
    """
    if is_stored(name):
        return _stored(name)
    local = _path_of_url(name) if name.startswith("file:///") else name
    if not is_url(local) and ("#" not in local or os.path.exists(local)):  # noqa: PTH110 - a text
        return FileOfMachine(name, Path(local))
    if "#" in local:
        return _in_store(name, *local.split("#", 1))
    return _by_url(name, local, options)


def _path_of_url(url: str) -> str:
    """Return the path of a ``file://`` URL, also of one with escapes such as ``%20``."""
    path = url.removeprefix("file://")
    return path if "%" not in path or os.path.exists(path) else unquote(path)  # noqa: PTH110


def _by_url(name: str, url: str, options: Mapping[str, Any]) -> OpenedFile:
    from dagster_dataops.streams.files.logins import has_login

    file = None if options or has_login(url) else object_at(url)
    return RemoteUrlFile(name, url, options) if file is None else ObjectOfStore(name, file)


def _in_store(name: str, store: str, member: str) -> OpenedFile:
    """Open a file in a store."""
    try:
        version = _version_of_store(store)
        content = function_of_part("file_of_store")(store, member)
    except (DataOpsError, OSError) as error:
        raise FileError(name, _reason(error), _FIND) from error
    if isinstance(content, bytes):
        return FileOfStore(name, content, version)
    if isinstance(content, str):
        return _by_url(name, content, {}) if is_url(content) else FileOfMachine(name, Path(content))
    return FileOfShard(name, content)


def _stored(name: str) -> OpenedFile:
    """Open a file that an operator made."""
    searched = roots()
    unread = []
    for root in searched:
        path = root.path / name
        if path.is_file():
            return MadeFile(name, path)
        if root.bucket is not None:
            file = BucketFile(root.bucket, root.bucket.key_of(path))
            try:
                if object_exists(file):
                    return MadeObject(name, file)
            except DataOpsError as error:
                unread.append(f"{root} {_reason(error)}")
    if Path(name).is_file():
        return MadeFile(name, Path(name))
    problem = f"is below none of the roots of results {', '.join(map(str, searched))}"
    if unread:
        raise FileError(name, f"{problem}; but {'; '.join(unread)}", "make these roots readable")
    raise FileError(name, problem, "set data_process_path to the root that has the file")


def state_of_file(name: str) -> list[object]:
    """Return the state of a file, as an `OpenedFile` has it; a store is not read.

    Raises:
        FileError: There is no such file, or it cannot be read.
    """
    store, mark, _ = name.partition("#")
    if mark and os.path.isfile(store) and not os.path.exists(name):  # noqa: PTH110,PTH113 - texts
        return [_version_of_store(store)]
    with open_file(name) as file:
        return file.state


def _version_of_store(store: str) -> str | None:
    try:
        return version_of(os.stat(store))  # noqa: PTH116 - a text
    except OSError:
        return None  # a URL


def _facts_of(status: os.stat_result) -> tuple[int, str, int]:
    """Return the size, version and inode of a file of this machine."""
    return status.st_size, version_of(status), status.st_ino


def version_of(status: os.stat_result) -> str:
    """Return the version of a file of this machine: its time of modification."""
    return f"modified:{status.st_mtime_ns}"


def _reported(details: dict[str, Any]) -> str | None:
    identity = identity_of(details)
    return None if identity is None else f"reported:{identity[1]}"


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)
