"""`ObjectStore`: a bucket of S3, GCS, Azure or a server compatible with S3, by obstore.

A store must refuse to create an object that exists, and to replace an object of another version.
Both are tried when the store is opened. After a lost answer a request is sent again; if the first
one was carried out, the second is refused. So a refusal counts only if the content is not ours.

The first request of a process fails soon if the store does not answer, as the address may be wrong.
Later requests are repeated for minutes, so that a run outlasts an outage or a limit of the store.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from dagster_dataops.errors import MissingExtraError, StorageError, StoreRefusedError
from dagster_dataops.foundation.places.bucket import StoreBucket
from dagster_dataops.foundation.places.result_store import (
    ConflictError,
    ResultStore,
    Status,
    Version,
)

try:
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
    from obstore.store import from_url
except ImportError:
    raise MissingExtraError("a root on an object store", "objectstore") from None

PART_BYTES: Final = 16 << 20  # of an upload
_LARGE_BYTES: Final = 32 << 20  # from here an upload has parts
_PIECE_BYTES: Final = 1 << 20  # of an answer
_CALLS: Final = 3  # parts of an upload at once
_PATIENCE: Final[Any] = {
    "max_retries": 1000,
    "retry_timeout": timedelta(minutes=3),
    "backoff": {
        "init_backoff": timedelta(seconds=0.1),
        "max_backoff": timedelta(seconds=5),
        "base": 3,
    },
}
_NO_RANGE: Final = "416"  # HTTP status: an empty object has no range of bytes
_REFUSED: Final = (AlreadyExistsError, PreconditionError)


def open_store(bucket: StoreBucket, *, read_only: bool = False) -> "ObjectStore":
    """Return the store of a bucket, after a check of its conditional writes.

    Args:
        bucket: The bucket.
        read_only: Whether nothing will be written to it; then it is not checked.

    Raises:
        StoreRefusedError: It cannot be reached, or lacks conditional writes.
    """
    options: dict[str, Any] = dict(bucket.options)
    endpoint = options.get("endpoint") or os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint.startswith("http://"):
        options["client_options"] = {"allow_http": True}
    try:
        if bucket.url.startswith("memory:"):
            store = ObjectStore(bucket.url, from_url("memory:///", **options))
        else:
            patient = from_url(bucket.url, retry_config=_PATIENCE, **options)
            first = patient if bucket.reached else from_url(bucket.url, **options)
            store = ObjectStore(bucket.url, first, patient)
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise StoreRefusedError(bucket.url, "open the store", _reason(error)) from error
    if not read_only:
        store.check()
    return store


class ObjectStore(ResultStore):
    """A bucket.

    Args:
        url: Its URL.
        client: The client of obstore for it.
        patient: The client after the first answer; ``None`` for the same.
    """

    def __init__(self, url: str, client: Any, patient: Any = None) -> None:
        self.url = url
        self._client = client
        self._patient = patient or client

    def check(self) -> None:
        """Check that the store refuses to overwrite objects of other versions.

        Raises:
            StoreRefusedError: It does not, or cannot be reached.
        """
        key = f".dagster-dataops-check/{uuid.uuid4().hex}"
        try:
            self._check(key)
        except StoreRefusedError:
            raise
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                reason = "there is no such bucket; create it first"
                raise StoreRefusedError(self.url, "write to the store", reason) from error
            if isinstance(error.__cause__, NotImplementedError):
                reason = "it lacks conditional writes, so two runs could overwrite one another"
                raise StoreRefusedError(self.url, "hold results", reason) from error
            raise StoreRefusedError(self.url, "write to the store", error.reason) from error

    def _check(self, key: str) -> None:
        first = self.create(key, b"1")
        lacks = ""
        try:
            self.create(key, b"2")
            lacks = "it overwrites an object that is to be created (If-None-Match)"
        except ConflictError:
            second = self.replace(key, b"3", first)
            try:
                self.replace(key, b"4", first)
                lacks = "it replaces an object of another version (If-Match)"
            except ConflictError:
                if second == first:
                    lacks = "the version of an object does not change with its content"
        self.remove([key])
        if lacks:
            reason = f"{lacks}, so two runs could overwrite one another's results"
            raise StoreRefusedError(self.url, "hold results", reason)

    @override
    def create(self, key: str, data: bytes) -> Version:
        return self._written(key, data, "create")

    @override
    def replace(self, key: str, data: bytes, seen: Version | None) -> Version:
        return self._written(key, data, "create" if seen is None else _update(seen))

    def _written(self, key: str, data: bytes, mode: Any) -> Version:
        with self._named(key, "write"):
            try:
                return _version(
                    obstore.put(self._client, key, data, mode=mode, use_multipart=False)
                )
            except _REFUSED:
                pass
        found = self.read(key)
        if found is not None and found[0] == data:
            return found[1]
        raise ConflictError(key)

    @override
    def put(self, key: str, data: bytes) -> None:
        with self._named(key, "write"):
            large = len(data) >= _LARGE_BYTES
            obstore.put(self._client, key, data, use_multipart=large, **_PARTS)

    @override
    def upload(self, key: str, path: Path) -> None:
        with self._named(key, f"upload {path} to it"):
            large = path.stat().st_size >= _LARGE_BYTES
            obstore.put(self._client, key, path, use_multipart=large, **_PARTS)

    @override
    def read(self, key: str) -> tuple[bytes, Version] | None:
        with self._named(key, "read"):
            try:
                found = obstore.get(self._client, key)
                return bytes(found.bytes()), _version(found.meta)
            except FileNotFoundError:
                return None

    @override
    def read_start(self, key: str, length: int) -> tuple[Status, bytes] | None:
        with self._named(key, "read"):
            try:
                found = obstore.get(self._client, key, options={"range": (0, length)})
                return Status(found.meta["size"], _version(found.meta)), bytes(found.bytes())
            except FileNotFoundError:
                return None
            except BaseError as error:
                status = self.status(key) if _NO_RANGE in str(error) else None
                if status is None or status.size:
                    raise
                return status, b""

    @override
    def read_range(self, key: str, start: int, length: int, version: Version) -> bytes:
        with self._unchanged(key):
            return bytes(self._get(key, start, start + length, version).bytes())

    @override
    def read_on(self, key: str, start: int, end: int, version: Version) -> Iterator[bytes]:
        with self._unchanged(key):
            found = self._get(key, start, end, version)
            yield from map(bytes, found.stream(min_chunk_size=_PIECE_BYTES))

    def _get(self, key: str, start: int, end: int, version: Version) -> Any:
        options: Any = {"range": (start, end), "if_match": version.tag}
        return obstore.get(self._client, key, options=options)

    @contextmanager
    def _unchanged(self, key: str) -> Iterator[None]:
        with self._named(key, "read"):
            try:
                yield
            except (*_REFUSED, FileNotFoundError):
                raise ConflictError(key) from None

    @override
    def status(self, key: str) -> Status | None:
        with self._named(key, "read"):
            try:
                found = obstore.head(self._client, key)
            except FileNotFoundError:
                return None
        return Status(found["size"], _version(found))

    @override
    def names(self, prefix: str) -> list[str]:
        with self._named(prefix, "list"):
            pages = obstore.list(self._client, prefix=f"{prefix}/")
            return sorted(found["path"] for page in pages for found in page)

    @override
    def names_in(self, prefix: str) -> list[str]:
        with self._named(prefix, "list"):
            listed = obstore.list_with_delimiter(self._client, prefix=f"{prefix}/")
            return sorted(found["path"] for found in listed["objects"])

    @override
    def remove(self, keys: Iterable[str]) -> None:
        listed = list(keys)
        if listed:
            with self._named(listed[0], "delete"):
                try:
                    obstore.delete(self._client, listed)
                except FileNotFoundError:
                    return

    @contextmanager
    def _named(self, key: str, action: str) -> Any:
        try:
            yield
        except (BaseError, OSError, NotImplementedError) as error:
            raise StorageError(f"{self.url}/{key}", action, _reason(error)) from error
        self._client = self._patient


_PARTS: Final[dict[str, Any]] = {"chunk_size": PART_BYTES, "max_concurrency": _CALLS}


def _version(found: Any) -> Version:
    return Version(found["e_tag"] or "", found["version"] or "")


def _update(seen: Version) -> Any:
    return {"e_tag": seen.tag, "version": seen.number} if seen.number else {"e_tag": seen.tag}


def _reason(error: BaseException) -> str:
    """Return the first line of the message of an error, without the details of the client."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:300] if text else 'no message'}"
