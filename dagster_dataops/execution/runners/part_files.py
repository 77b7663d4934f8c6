"""Files of parts: several byte strings in one file, each with its checksum.

A file is complete or absent, unless the machine loses power; the checksums then show the damage.
In a bucket a file is an object.
"""

import os
import re
import shutil
import struct
import uuid
from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, overload

import xxhash

from dagster_dataops.datasets.durable_files import draft_of, storage
from dagster_dataops.datasets.machine_folders import machine_folder
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import (
    BucketFile,
    LocalFile,
    Location,
    facts_of_location,
    location_of,
)

if TYPE_CHECKING:
    from dagster_dataops.foundation.places.result_store import ResultStore

_ENTRY: Final = struct.Struct("<QQQ")  # offset, bytes, checksum
_END: Final = struct.Struct("<QQ")  # checksum and number of the entries
_NAME: Final = re.compile(r"[a-z]+-[0-9]{6,}")
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_FOLDER: Final = "dagster-dataops-stages"
_LEAST_AT_ONCE: Final = 512 << 10  # bytes that are read by one request, in order
_MOST_SENT: Final = 8 << 20  # bytes that are sent by one request
_TAIL_BYTES: Final = 8 << 10  # that are read first, with most lists of parts
_MOST_KNOWN: Final = 8 << 10  # lists of parts in the memory of a process: up to 6 KB each
_REQUESTS: Final = 8  # at the same time


class DamagedPartError(ValueError):
    """A file of parts is damaged or gone; the step that writes it can be repeated.

    Attributes:
        path: The file, or the folder of a stage.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class PartsFolder:
    """Where the files of parts of a step are: in a folder, or in a bucket that agents reach, too.

    In a bucket the key of a file is the same in every attempt and on every machine, and a file of
    parts is whole or absent. So it is the record of its task, which no later attempt repeats.

    Args:
        path: The folder.
        objects: The bucket, and how the keys of the files begin; ``None`` if they are in ``path``.
        digests: For each kind of files in a bucket the digest of its stage.
    """

    def __init__(
        self, path: Path, objects: BucketFile | None = None, digests: Mapping[str, str] = _NONE
    ) -> None:
        self.path, self.objects, self._digests = path, objects, digests

    def with_stage(self, kind: str, digest: str) -> "PartsFolder":
        """Return the folder with the files of another stage."""
        return PartsFolder(self.path, self.objects, {**self._digests, kind: digest})

    def file(self, kind: str, number: int) -> Location:
        """Return the file of parts that a task writes.

        Args:
            kind: The kind of the files of its stage; no other stage of the step has it.
            number: The number of the task.
        """
        name = file_name(kind, number)
        if self.objects is None:
            return self.path / name
        return BucketFile(self.objects.bucket, f"{self.objects.key}{self._digests[kind]}-{name}")

    def remove_damaged(self, path: str) -> None:
        """Delete a damaged file of parts, and all others of this machine.

        Args:
            path: Of the file, as `DamagedPartError` has it.
        """
        if self.objects is not None:
            key = path.removeprefix(f"{self.objects.bucket.url}/")
            if key.startswith(self.objects.key):
                _store(self.objects).remove([key])
            return
        if Path(path).parent == self.path:
            remove(Path(path))
        for file in self.path.glob("*-*"):
            if _NAME.fullmatch(file.name) and not is_whole(file, deeply=True):
                remove(file)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield an empty folder of this machine; an error of the disk in the block is an error.

        Raises:
            StorageError: The disk refuses.
        """
        here = self.objects is None
        scratch = _scratch(self.path) if here else machine_folder(_FOLDER, "scratch")
        with storage(self.path, "work in a partition"), scratch as path:
            yield path

    @override
    def __reduce__(self) -> Any:
        objects = None if self.objects is None else SentLocation(self.objects)
        return _received, (self.path, objects, dict(self._digests))


def file_name(kind: str, number: int) -> str:
    """Return the name of the file of parts that a task writes."""
    return f"{kind}-{number:06d}"


class SentLocation:
    """A location that another process of the run gets with all options of its store."""

    def __init__(self, location: Location) -> None:
        self.location = location

    @override
    def __reduce__(self) -> Any:
        return _located, facts_of_location(self.location)


def _located(name: str, bucket: tuple[Any, ...]) -> SentLocation:
    return SentLocation(location_of(name, bucket))


def _received(path: Path, objects: Any, digests: Mapping[str, str]) -> PartsFolder:
    return PartsFolder(path, None if objects is None else objects.location, digests)


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    with TemporaryDirectory(prefix="scratch-", ignore_cleanup_errors=True, dir=folder) as path:
        yield Path(path)


def write_parts(file: Location, parts: Iterable[bytes]) -> None:
    """Write a file of parts."""
    if isinstance(file, BucketFile):
        _put(file, _content(parts))
        return
    path = Path(file)
    draft = draft_of(path.with_name(f"{path.name}-{uuid.uuid4().hex}"))  # of this process alone
    with storage(path, "write"):
        with draft.open("wb") as opened:
            opened.writelines(_content(parts))
        draft.replace(path)


def _store(file: BucketFile) -> "ResultStore":
    from dagster_dataops.foundation.places.open_stores import reading  # only with a bucket

    return reading(file.bucket)


def _put(file: BucketFile, content: Iterator[bytes]) -> None:
    """Make an object, by one request if it is small; an error leaves none."""
    store, block = _store(file), bytearray()
    for piece in content:
        block += piece
        if len(block) >= _MOST_SENT:
            break
    else:
        store.put(file.key, bytes(block))
        return
    upload = store.begin_upload(file.key, _MOST_SENT)
    try:
        upload.write(bytes(block))
        for piece in content:
            upload.write(piece)
        upload.finish()
    except BaseException:
        upload.abort()
        raise


def _content(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the content of a file of parts: the parts, their entries, and the end."""
    entries, offset = [], 0
    for part in parts:
        yield part
        entries.append(_ENTRY.pack(offset, len(part), xxhash.xxh3_64_intdigest(part)))
        offset += len(part)
    index = b"".join(entries)
    yield index + _END.pack(xxhash.xxh3_64_intdigest(index), len(entries))


def _size(file: Location) -> int:
    if isinstance(file, BucketFile):
        status = _store(file).status(file.key)
        if status is None:
            raise DamagedPartError(_name(file))
        return status.size
    with _reading(file):
        return os.stat(file).st_size  # noqa: PTH116 - a path, or the copy of an object


def read_object(file: BucketFile, start: int, length: int) -> bytes:
    """Return bytes of an object.

    Raises:
        DamagedPartError: There is no such object.
        StorageError: The store cannot be reached.
    """
    from dagster_dataops.foundation.places.result_store import ConflictError

    try:
        return _store(file).read_range(file.key, start, length, None)
    except ConflictError:
        raise DamagedPartError(_name(file)) from None


def _read(file: Location, start: int, length: int) -> bytes:
    if not length:
        return b""
    if isinstance(file, BucketFile):
        return read_object(file, start, length)
    with _reading(file), open(file, "rb") as opened:  # noqa: PTH123
        opened.seek(start)
        return opened.read(length)


def _name(file: Location) -> str:
    return f"{file.bucket.url}/{file.key}" if isinstance(file, BucketFile) else str(file)


@contextmanager
def _reading(file: LocalFile) -> Iterator[None]:
    with storage(file, "read"):
        try:
            yield
        except (FileNotFoundError, IsADirectoryError):
            raise DamagedPartError(str(file)) from None


def is_whole(file: Location, *, deeply: bool = False) -> bool:
    """Return whether a file of parts can be read.

    Args:
        file: The file.
        deeply: Whether to check all parts, and not only their list.
    """
    try:
        parts = PartsFile(file)
        return not deeply or sum(1 for _ in parts) == len(parts)
    except DamagedPartError:
        return False


def remove(path: Path) -> None:
    """Delete a file, or a folder with all that is in it; nothing if there is none."""
    with storage(path, "delete"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class _LazyParts(Sequence[bytes]):
    """Parts that are read one by one."""

    @abstractmethod
    def _part(self, number: int) -> bytes: ...

    @overload
    def __getitem__(self, number: int) -> bytes: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[bytes]: ...
    @override
    def __getitem__(self, number: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(number, slice):
            return [self._part(at) for at in range(*number.indices(len(self)))]
        return self._part(number)


class PartsFile(_LazyParts):
    """The parts of a file. Each access reads one; a loop reads some at once from a bucket.

    Args:
        file: The file.
        at_once: Bytes that a loop reads from a bucket by one request.

    Raises:
        DamagedPartError: The file is not whole, or there is none.
        StorageError: The disk or the store refuses.
    """

    def __init__(self, file: Location, at_once: int = _LEAST_AT_ONCE) -> None:
        self._file, self._at_once = file, at_once if isinstance(file, BucketFile) else 0
        entries = _entries_of_object(file) if isinstance(file, BucketFile) else _entries(file)
        self._entries = list(zip(*[iter(entries)] * 3, strict=True))

    @override
    def __len__(self) -> int:
        return len(self._entries)

    @override
    def __iter__(self) -> Iterator[bytes]:
        first = 0
        while first < len(self._entries):
            last, size = first, 0
            while last < len(self._entries) and (last == first or size < self._at_once):
                size += self._entries[last][1]
                last += 1
            parts = self._together(first, last, size)
            while parts:
                yield parts.popleft()  # not held here, so that the caller can free it
            first = last

    def _together(self, first: int, last: int, size: int) -> deque[bytes]:
        """Return the parts [first, last), of ``size`` bytes, by one read."""
        start = self._entries[first][0]
        block = _read(self._file, start, size)
        return deque(
            self._checked(block[offset - start : offset - start + length], check)
            for offset, length, check in self._entries[first:last]
        )

    @override
    def _part(self, number: int) -> bytes:
        offset, length, check = self._entries[number]
        return self._checked(_read(self._file, offset, length), check)

    def _checked(self, part: bytes, check: int) -> bytes:
        if xxhash.xxh3_64_intdigest(part) != check:
            raise DamagedPartError(_name(self._file))
        return part


def _entries(file: Location) -> "array[int]":
    """Return offset, length and checksum of each part, one after the other."""
    size = _size(file)
    tail = _read(file, max(0, size - _TAIL_BYTES), min(size, _TAIL_BYTES))
    check, count = _END.unpack(tail[-_END.size :]) if len(tail) >= _END.size else (0, 0)
    end = size - _END.size
    start = end - count * _ENTRY.size
    index = tail[: -_END.size][-count * _ENTRY.size :] if count else b""
    if len(index) < end - start and start >= 0:
        index = _read(file, start, end - start)
    if end < 0 or start < 0 or xxhash.xxh3_64_intdigest(index) != check:
        raise DamagedPartError(_name(file))
    entries = array("Q", struct.unpack(f"<{3 * count}Q", index))
    if start != sum(entries[1::3]):  # a part of a file may end so
        raise DamagedPartError(_name(file))
    return entries


@lru_cache(maxsize=_MOST_KNOWN)
def _entries_of_object(file: BucketFile) -> "array[int]":
    """Return the entries of an object, which never changes: all partitions read of all ranges."""
    return _entries(file)


class Column(_LazyParts):
    """The part of one number in each of several files."""

    def __init__(self, files: Sequence[Location], number: int) -> None:
        self._files, self._number = files, number

    @override
    def __len__(self) -> int:
        return len(self._files)

    def fetched(self, scratch: Path) -> Sequence[bytes]:
        """Return the parts after they were copied from a bucket to a folder, each once."""
        if not any(isinstance(file, BucketFile) for file in self._files):
            return self
        path = scratch / f"column-{uuid.uuid4().hex}"
        write_parts(path, read_ahead(self._part, range(len(self))))
        return PartsFile(path)

    @override
    def _part(self, number: int) -> bytes:
        return PartsFile(self._files[number])[self._number]


def read_ahead(read: Callable[[int], bytes], numbers: Sequence[int]) -> Iterator[bytes]:
    """Yield what a function returns for each number, in order; some calls run at once."""
    from concurrent.futures import Future, ThreadPoolExecutor  # only for a bucket

    with ThreadPoolExecutor(_REQUESTS) as pool:
        waiting: deque[Future[bytes]] = deque()
        for number in numbers:
            waiting.append(pool.submit(read, number))
            if len(waiting) > _REQUESTS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
