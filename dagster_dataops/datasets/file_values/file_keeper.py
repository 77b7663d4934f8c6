"""`File`: bytes that an operator returns. `FileKeeper`: stores them by their content.

A file is written under another name and renamed, so it is whole for every reader. It is synced
before the record that names it is journaled. Two processes may write the same file: the bytes are
the same.

A file that is there already gets the present time, as if it were new: `unnamed_files` deletes only
files that are older than the grace period, and asks under the same lock.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from dagster_dataops.datasets.durable_files import create_anew, storage, sync_folder, write_all
from dagster_dataops.errors import FileNotStoredError, StorageError
from dagster_dataops.foundation.concurrency.file_lock import locked_file, shared
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.root import Root

FILES: Final = "files"  # the folder below the root of the results
LOCK: Final = ".files.lock"  # in it; a node may have the name of the folder
DRAFT_ENDING: Final = ".draft"
_WRITERS: Final = 16  # syncs and uploads at the same time
_MOST_KNOWN: Final = 10_000  # uploaded files that are not sent again
_MOST_PENDING: Final = 64 << 20  # bytes that wait to be uploaded


MADE: Final[list[bool]] = []
"""Has an element if this process has made a `File`. Else no record needs to be searched."""


@dataclass(frozen=True)
class File:
    """A file that an operator returns in a field; its record holds a reference to it.

    The file is stored once by its content, as ``files/ab/cdef...`` below the root of the results,
    before the record counts as finished. It may be in a list or a dict of the field.

        def thumbnail(record):
            record["thumbnail"] = File(shrunk(record["file"]), "image/png")
            return record

    Attributes:
        data: The content.
        media_type: The media type; by default the one that the content shows, else
            ``application/octet-stream``.

    Raises:
        TypeError: The content is no bytes, or the media type no text.
    """

    data: bytes = field(repr=False)
    media_type: str = ""

    def __post_init__(self) -> None:
        data, kind = cast("tuple[object, object]", (self.data, self.media_type))
        if not isinstance(data, bytes) or not isinstance(kind, str):
            kinds = f"{type(self.data).__name__} and {type(self.media_type).__name__}"
            msg = f"File takes bytes and the text of a media type; got {kinds}"
            raise TypeError(msg)
        if not self.media_type:
            from dagster_dataops.datasets.file_values.media_types import type_of_content

            kind = type_of_content(self.data) or "application/octet-stream"
            object.__setattr__(self, "media_type", kind)
        if not MADE:
            MADE.append(True)


def name_of_content(digest: str) -> str:
    """Return the name of a stored file below the root, by the hexadecimal digits of its digest."""
    return f"{FILES}/{digest[:2]}/{digest[2:]}"


class FileKeeper:
    """Stores files below a root. Any thread may call its methods.

    Args:
        root: The root of the results.

    Attributes:
        root: The root of the results.
    """

    def __init__(self, root: Root) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._written: set[Path] = set()  # not synced yet
        self._uploads: dict[str, bytes] = {}  # not uploaded yet, by key
        self._pending_bytes = 0  # of them
        self._uploaded: set[str] = set()  # keys of the last ones
        self._is_used = False
        self._synced_folders: set[Path] = set()

    @override
    def __reduce__(self) -> Any:
        return FileKeeper, (self.root,)

    @property
    def kinds(self) -> tuple[type, ...]:
        """The types of values that it stores."""
        return (File,)

    def __call__(self, value: object) -> object:
        """Return the JSON form of a value that the encoder does not know.

        Raises:
            FileNotStoredError: The disk refuses the file.
            TypeError: The value is no `File`.
        """
        if isinstance(value, File):
            return self.keep(value)
        raise TypeError(type(value).__name__)

    def keep(self, file: File) -> dict[str, Any]:
        """Store a file, and return the reference to it. The file is whole; `sync` makes it durable.

        Raises:
            FileNotStoredError: The disk or the store refuses it.
        """
        from hashlib import sha256  # slow to import; few runs make files

        digest = sha256(file.data).hexdigest()
        name = name_of_content(digest)
        with _refusals():
            self._store(name, file.data)
        size, kind = len(file.data), file.media_type
        return {"file": name, "size": size, "digest": f"sha256:{digest}", "media_type": kind}

    def _store(self, name: str, data: bytes) -> None:
        bucket, path = self.root.bucket, self.root.path / name
        self._is_used = True
        if bucket is not None:
            with self._lock:
                key = bucket.key_of(path)
                if key in self._uploaded:
                    return
                self._pending_bytes += len(data) * (key not in self._uploads)
                self._uploads[key] = data
                full = self._pending_bytes >= _MOST_PENDING
            if full:
                self.sync()
            return
        with storage(path, "store the file"):
            if not self._is_there(path, data):
                _write(path, data)
        with self._lock:
            self._written.add(path)

    def _is_there(self, path: Path, data: bytes) -> bool:
        """Return whether a file is stored; then it counts as new. A power loss may damage it."""
        try:
            if path.stat().st_size != len(data):
                return False
            with self.in_use():
                os.utime(path)
            return path.read_bytes() == data
        except FileNotFoundError:
            return False

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep files from being deleted while the block runs."""
        with locked_file(self.root.path / FILES / LOCK, shared):
            yield

    def sync(self) -> None:
        """Make all files durable that were stored, also those that another thread is syncing.

        Raises:
            FileNotStoredError: Disk or store refuse.
        """
        if not self._is_used:
            return
        with self._lock, _refusals():
            written, self._written = self._written, set()
            uploads, self._uploads = self._uploads, {}
            try:
                if uploads:
                    self._upload(uploads)
                    self._uploaded = {*uploads, *(self._uploaded if self._knows_few else ())}
                if written:
                    self._sync(written)
                self._pending_bytes = 0
            except BaseException:
                self._written |= written
                self._uploads = {**uploads, **self._uploads}
                raise

    @property
    def _knows_few(self) -> bool:
        return len(self._uploaded) < _MOST_KNOWN

    def _upload(self, uploads: Mapping[str, bytes]) -> None:
        bucket = self.root.bucket
        assert bucket is not None  # noqa: S101 - else nothing is uploaded
        # Imported only if there is a bucket.
        from dagster_dataops.datasets.file_values.pruning_mark import PruningMark
        from dagster_dataops.foundation.places.open_stores import writing

        store = writing(bucket, bucket.key_of(self.root.path))
        mark = PruningMark(str(self.root), bucket.key_of(self.root.path / FILES), store)
        seen = None
        while seen is None or mark.read() != seen:  # files may have been deleted meanwhile
            seen = mark.idle()
            _each(lambda item: store.put(*item), list(uploads.items()))

    def _sync(self, written: set[Path]) -> None:
        with storage(self.root.path / FILES, "sync"):
            _each(_sync_file, sorted(written))
            folders = {path.parent for path in written}
            if not folders <= self._synced_folders:
                folders |= {self.root.path / FILES, self.root.path}
            _each(sync_folder, sorted(folders))
        self._synced_folders |= folders


def with_stored_files(value: Any, keeper: FileKeeper | None) -> Any:
    """Store the files in a record or in a value of one; return it with references in their place.

    Without a keeper the files stay as they are.

    Raises:
        StorageError: Disk or store refuse a file.
    """
    if keeper is None:
        return value
    kind = type(value)
    if kind is dict:
        return {name: with_stored_files(item, keeper) for name, item in value.items()}
    if kind is list or kind is tuple:
        return kind(with_stored_files(item, keeper) for item in value)
    if not isinstance(value, File):
        return value
    reference = keeper.keep(value)
    if keeper.root.bucket is not None:  # the next part may read it
        keeper.sync()
    return reference


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise errors of the disk or the store in the block as those that end the run."""
    try:
        yield
    except FileNotStoredError:
        raise
    except StorageError as error:
        raise FileNotStoredError(*error.args) from error


def _each(function: Any, values: list[Any]) -> None:
    """Call a function for each value, in threads if there are several; raise the first error."""
    if len(values) == 1:
        function(values[0])
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import

    with ThreadPoolExecutor(min(_WRITERS, len(values))) as pool:
        for _ in pool.map(function, values):
            pass


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; a kill may leave a draft."""
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}{DRAFT_ENDING}")
    try:
        descriptor = create_anew(draft)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = create_anew(draft)
    try:
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
