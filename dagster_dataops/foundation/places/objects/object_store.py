"""`ObjectStore`: a bucket of S3, GCS, Azure or a server compatible with S3, by obstore.

A store must refuse to create an object that exists, and to replace an object of another version.
After a lost answer a request is sent again; if the first one was carried out, the second is
refused. So a refusal counts only if the content is not ours.

The first request of a process, and its check of the store, fail soon if the store does not answer,
as the address may be wrong, or the store may not know a request.
Later requests are repeated for minutes, so that a run outlasts an outage or a limit of the store.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from dagster_dataops.errors import MissingExtraError, StorageError, StoreRefusedError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.bucket import StoreBucket
from dagster_dataops.foundation.places.objects.store_answers import NO_BUCKET, reason_of, refused
from dagster_dataops.foundation.places.objects.store_check import lack_of
from dagster_dataops.foundation.places.result_store import (
    ConflictError,
    ListedObject,
    ResultStore,
    Status,
    Upload,
    Version,
)

try:
    import obstore
    from obstore.exceptions import (
        AlreadyExistsError,
        BaseError,
        GenericError,
        PermissionDeniedError,
        PreconditionError,
        UnauthenticatedError,
    )
    from obstore.store import from_url
except ImportError:
    raise MissingExtraError("a root on an object store", "objectstore") from None

PART_BYTES: Final = 16 << 20  # of an upload
_LARGE_BYTES: Final = 32 << 20  # from here an upload has parts
_PIECE_BYTES: Final = 1 << 20  # of an answer
_MOST_PARTS: Final = 9000  # stores take 10,000
_CALLS: Final = 3  # parts of an upload at once
_UPLOAD: Final = "upload to it"
_PATIENCE_TIME: Final = timedelta(minutes=3)
_PATIENCE: Final[Any] = {
    "max_retries": 1000,
    "retry_timeout": _PATIENCE_TIME,
    "backoff": {
        "init_backoff": timedelta(seconds=0.1),
        "max_backoff": timedelta(seconds=5),
        "base": 3,
    },
}
_CHECK: Final = ".dagster-dataops-check"  # a folder of keys
_SINGLY: Final = "disable_bulk_delete"
"""The option of S3 to send a `DELETE` for each key. The request that deletes several keys goes to
the bucket: a server that judges requests by their paths refuses it, and some lack it."""
_DELETING: Final = 10  # keys at once
_NO_RANGE: Final = "416"  # HTTP status: an empty object has no range of bytes
_CLIENT: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "timeout",
        "user_agent",
    }
)
"""Options of connections: obstore takes them as ``client_options``."""
_REFUSED: Final = (AlreadyExistsError, PreconditionError)
_FORBIDDEN: Final = (PermissionDeniedError, UnauthenticatedError)
_BROKEN_OFF: Final = "response body error"  # in the message of an answer that broke off
_PAUSE_SECONDS: Final = 0.2  # before a request is sent again whose answer broke off
_Answer = TypeVar("_Answer")


def open_store(bucket: StoreBucket, *, written_below: str | None = None) -> "ObjectStore":
    """Return the store of a bucket, after a check that it has what results need.

    Args:
        bucket: The bucket.
        written_below: A prefix of keys below which objects will be written: the check needs rights
            there, and nowhere else. ``None`` if nothing will be written; then it is not checked.

    Raises:
        StoreRefusedError: It cannot be reached, lacks something, or refuses a right.
    """
    options = _options(bucket)
    try:
        if bucket.url.startswith("memory:"):
            store = ObjectStore(bucket.url, from_url("memory:///", **options))
        else:
            patient = from_url(bucket.url, retry_config=_PATIENCE, **options)
            first = patient if bucket.reached else from_url(bucket.url, **options)
            store = ObjectStore(bucket.url, first, patient)
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise StoreRefusedError(bucket.url, "open the store", reason_of(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the client, about an option
            raise
        reason = f"its client refuses one of the options {', '.join(sorted(options))}: {error}"
        raise StoreRefusedError(bucket.url, "open the store", reason) from error
    if written_below is not None:
        store.check(written_below)
    return store


def _options(bucket: StoreBucket) -> dict[str, Any]:
    """Return the options of obstore for a bucket."""
    options: dict[str, Any] = dict(bucket.options)
    client: dict[str, Any] = {key: options.pop(key) for key in _CLIENT & options.keys()}
    endpoint = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint.startswith("http://"):
        client.setdefault("allow_http", True)
    if client:
        options["client_options"] = client
    if bucket.url.startswith("s3:") and f"aws_{_SINGLY}" not in options:
        options.setdefault(_SINGLY, True)
    return options


class ObjectStore(ResultStore):
    """A bucket.

    Args:
        url: Its URL.
        client: The client of obstore for it.
        patient: The client after the first answer; ``None`` for the same.
    """

    def __init__(self, url: str, client: Any, patient: Any = None) -> None:
        self.url = url
        self.shared = not url.startswith("memory:")
        self._client = client
        self._patient = patient or client

    def check(self, below: str = "") -> None:
        """Check that the store has what results need, see `lack_of`.

        No request is repeated for long: a store may answer one that it does not know with 501.

        All requests are for keys below a prefix, so that rights for other keys are not needed.

        Args:
            below: The prefix, without slashes at its ends; empty for the whole bucket.

        Raises:
            StoreRefusedError: It lacks something, cannot be reached, or refuses a right.
        """
        place = f"{self.url}/{below}".rstrip("/")
        patient, self._patient = self._patient, self._client
        try:
            lacks = lack_of(self, f"{below}/{_CHECK}".lstrip("/"))
        except StorageError as error:
            raise refused(place, error) from error
        finally:
            self._patient = patient
        if lacks:
            raise StoreRefusedError(place, "hold results", lacks)

    @override
    def create(self, key: str, data: bytes) -> Version:
        return self._written(key, data, "create")

    @override
    def replace(self, key: str, data: bytes, seen: Version | None) -> Version:
        return self._written(key, data, "create" if seen is None else _update(seen))

    def _written(self, key: str, data: bytes, mode: Any) -> Version:
        with self.named(key, "write"):
            try:
                return _version(
                    _repeated(
                        lambda: obstore.put(self._client, key, data, mode=mode, use_multipart=False)
                    )
                )
            except _REFUSED:
                pass
        current = self.read(key)
        if current is not None and current[0] == data:
            return current[1]
        raise ConflictError(key)

    @override
    def put(self, key: str, data: bytes, *, in_parts: bool = False) -> None:
        with self.named(key, "upload" if in_parts else "write"):
            parted = in_parts or len(data) >= _LARGE_BYTES
            _repeated(lambda: obstore.put(self._client, key, data, use_multipart=parted, **_PARTS))

    @override
    def upload(self, key: str, path: Path) -> None:
        with self.named(key, f"upload {path} to it"):
            size = path.stat().st_size
            parts = {**_PARTS, "chunk_size": part_bytes(size, PART_BYTES)}
            large = size >= _LARGE_BYTES
            _repeated(lambda: obstore.put(self._client, key, path, use_multipart=large, **parts))

    @override
    def begin_upload(self, key: str, part_bytes: int) -> Upload:
        with self.named(key, _UPLOAD):
            options: Any = {"buffer_size": part_bytes, "max_concurrency": _CALLS}
            return ObjectUpload(self, key, obstore.open_writer(self._client, key, **options))

    @override
    def read(self, key: str) -> tuple[bytes, Version] | None:
        def read() -> tuple[bytes, Version]:
            answer = obstore.get(self._client, key)
            return bytes(answer.bytes()), _version(answer.meta)

        with self.named(key, "read"):
            return _if_there(read)

    @override
    def read_start(self, key: str, length: int) -> tuple[Status, bytes] | None:
        def read() -> tuple[Status, bytes]:
            answer = obstore.get(self._client, key, options={"range": (0, length)})
            return Status(answer.meta["size"], _version(answer.meta)), bytes(answer.bytes())

        with self.named(key, "read"):
            try:
                return _if_there(read)
            except BaseError as error:
                status = self.status(key) if _NO_RANGE in str(error) else None
                if status is None or status.size:
                    raise
                return status, b""

    @override
    def read_range(self, key: str, start: int, length: int, version: Version | None) -> bytes:
        with self._unchanged(key):
            return _repeated(lambda: bytes(self._get(key, start, start + length, version).bytes()))

    @override
    def read_on(self, key: str, start: int, end: int, version: Version) -> Iterator[bytes]:
        with self._unchanged(key):
            answer = self._get(key, start, end, version)
            yield from map(bytes, answer.stream(min_chunk_size=_PIECE_BYTES))

    def _get(self, key: str, start: int, end: int, version: Version | None) -> Any:
        options: Any = {"range": (start, end)}
        if version is not None:
            options["if_match"] = version.tag
        answer = obstore.get(self._client, key, options=options)
        if version is not None and _tag(answer.meta["e_tag"]) != _tag(version.tag):
            raise ConflictError(key)  # the store ignores the condition
        return answer

    @contextmanager
    def _unchanged(self, key: str) -> Iterator[None]:
        with self.named(key, "read"):
            try:
                yield
            except (*_REFUSED, FileNotFoundError):
                raise ConflictError(key) from None

    @override
    def status(self, key: str) -> Status | None:
        with self.named(key, "read"):
            try:
                answer = obstore.head(self._client, key)
            except FileNotFoundError:
                return None
        return Status(answer["size"], _version(answer))

    @override
    def names(self, prefix: str) -> list[str]:
        def listed() -> list[str]:
            pages = obstore.list(self._client, prefix=f"{prefix}/")
            return sorted(entry["path"] for page in pages for entry in page)

        with self.named(prefix, "list"):
            return _repeated(listed)

    @override
    def listed(self, prefix: str) -> dict[str, ListedObject]:
        def listed() -> dict[str, ListedObject]:
            pages = obstore.list(self._client, prefix=f"{prefix}/" if prefix else None)
            return {entry["path"]: _listed(entry) for page in pages for entry in page}

        with self.named(prefix, "list"):
            return _repeated(listed)

    @override
    def names_in(self, prefix: str) -> list[str]:
        def listed() -> list[str]:
            answer = obstore.list_with_delimiter(self._client, prefix=f"{prefix}/")
            return sorted(entry["path"] for entry in answer["objects"])

        with self.named(prefix, "list"):
            return _repeated(listed)

    @override
    def remove(self, keys: Iterable[str]) -> None:
        listed = list(keys)
        if not listed:
            return
        with self.named(listed[0], "delete"):
            try:
                _repeated(lambda: obstore.delete(self._client, listed))
            except FileNotFoundError:  # GCS refuses a missing key, and the rest was not deleted
                with ThreadPoolExecutor(_DELETING) as pool:
                    list(pool.map(self._remove, listed))

    def _remove(self, key: str) -> None:
        with self.named(key, "delete"):
            try:
                _repeated(lambda: obstore.delete(self._client, key))
            except FileNotFoundError as error:
                _check_bucket(error)

    @contextmanager
    def named(self, key: str, action: str) -> Iterator[None]:
        """Turn errors of the client in the block into a `StorageError` with the URL of a key."""
        try:
            yield
        except (BaseError, OSError, NotImplementedError) as error:
            raise StorageError(f"{self.url}/{key}", action, reason_of(error, action)) from error
        self._client = self._patient


class ObjectUpload(Upload):
    """A multipart upload."""

    def __init__(self, store: ObjectStore, key: str, writer: Any) -> None:
        self._store, self._key, self._writer = store, key, writer
        self._size = 0

    @override
    def write(self, data: bytes) -> None:
        with self._store.named(self._key, _UPLOAD):
            self._writer.write(data)
        self._size += len(data)

    @override
    def finish(self) -> None:
        try:
            with self._store.named(self._key, _UPLOAD):
                self._writer.close()
        except StorageError:
            status = self._store.status(self._key)
            if status is None or status.size != self._size:  # else its answer was lost
                raise

    @override
    def abort(self) -> None:
        with suppress(BaseError, OSError):
            if not self._writer.closed():
                self._writer.__exit__(RuntimeError, RuntimeError(), None)


def part_bytes(size: int, least: int) -> int:
    """Return the size of parts, at least ``least``, of which an object of ``size`` has few."""
    return max(least, -(-size // _MOST_PARTS))


_PARTS: Final[dict[str, Any]] = {"chunk_size": PART_BYTES, "max_concurrency": _CALLS}


def _tag(text: str | None) -> str:
    """Return an entity tag without the quotes, which listings of some stores leave out."""
    return (text or "").removeprefix("W/").strip('"')


def _version(answer: Any) -> Version:
    return Version(answer["e_tag"] or "", answer["version"] or "")


def _listed(entry: Any) -> ListedObject:
    status = Status(entry["size"], _version(entry))
    return ListedObject(status, entry["last_modified"].timestamp())


def _update(seen: Version) -> Any:
    return {"e_tag": seen.tag, "version": seen.number} if seen.number else {"e_tag": seen.tag}


def _check_bucket(error: FileNotFoundError) -> None:
    """Raise the error of a missing object again if the bucket is missing."""
    if any(sign in str(error) for sign in NO_BUCKET):
        raise error


def _if_there(request: Callable[[], _Answer]) -> _Answer | None:
    """Return the answer of a request, as `_repeated`; ``None`` if there is no such object."""
    try:
        return _repeated(request)
    except FileNotFoundError as error:
        _check_bucket(error)
        return None


def _repeated(request: Callable[[], _Answer]) -> _Answer:
    """Return the answer of a request that may be sent twice; send it again if it breaks off.

    The client itself repeats a request that gets no answer, or one that the store could not serve.
    """
    end = time.monotonic() + _PATIENCE_TIME.total_seconds()
    while True:
        try:
            return request()
        except GenericError as error:
            if _BROKEN_OFF not in str(error) or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
