"""`UploadedDraft`: the draft of a result, in the bucket once it is large.

The lines of a result that stays in parts are in the bucket already: they are digested, and put in a
file as long as they are few.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.datasets.durable_files import COPY_BYTES, storage
from dagster_dataops.datasets.writer import JsonlWriter
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.places.joined_object import PARTS, PartList
from dagster_dataops.foundation.places.result_store import ResultStore, Upload

LARGE_BYTES: Final = 256 << 20
_LEAST_PART_BYTES: Final = 64 << 20


def is_large(size: int) -> bool:
    """Return whether runs leave a result of ``size`` bytes in the bucket, without a copy."""
    return size > LARGE_BYTES


class _ListedParts(Upload):
    """The upload of lines that are in the bucket already: only the list of their parts is sent."""

    def __init__(self, store: ResultStore, key: str, parts: PartList) -> None:
        self._store, self._key, self._parts = store, key, parts

    @override
    def write(self, data: bytes) -> None:
        pass

    @override
    def finish(self) -> None:
        self._store.put(self._key, self._parts.to_bytes())

    @override
    def abort(self) -> None:
        pass


@contextmanager
def uploading(store: ResultStore, key: str, size: int) -> Iterator[Upload]:
    """Make an object of what is written in the block; an error in the block leaves none.

    Args:
        store: The store.
        key: The key, which only this run uses.
        size: The size of the object, as far as it is known.

    Raises:
        StorageError: The store cannot be reached.
    """
    upload = _begun(store, key, size)
    try:
        yield upload
        upload.finish()
    except BaseException:
        upload.abort()
        raise


def _begun(store: ResultStore, key: str, size: int) -> Upload:
    from dagster_dataops.foundation.places.objects.object_store import part_bytes

    return store.begin_upload(key, part_bytes(size, _LEAST_PART_BYTES))


class UploadedDraft(JsonlWriter):
    """Collects lines in a draft file, and in the bucket once they are many.

    The file is then sent, and removed. So a result that is larger than the disk of this machine
    can be published.

    Args:
        path: The file to write.
        store: The store.
        key: The key of the object.
        expected: The size of the result, as far as it is known.
        parts: Where its lines are in the bucket; ``None`` if it becomes an object of its own.

    Attributes:
        key: The key of the object, or of the list of its parts.
        parts: Where its lines are in the bucket, if they stay there.
        uploaded: Whether the finished draft is the object, and no file.
    """

    def __init__(
        self,
        path: Path,
        store: ResultStore,
        key: str,
        expected: int,
        parts: PartList | None = None,
    ) -> None:
        super().__init__(path)
        self.key, self.uploaded = key if parts is None else f"{key}{PARTS}", False
        self.parts = parts
        self._store, self._expected = store, expected
        self._upload: Upload | None = None
        self._finished_ns = 0

    @override
    def link(self, source: Path) -> None:
        if not is_large(source.stat().st_size):
            super().link(source)

    @override
    def write(self, lines: bytes, rows: int = 1) -> None:
        super().write(lines, rows)
        size = self.size_bytes if self._frames is None else self.stored_bytes
        if self._upload is None and is_large(size) and not self._linked:
            self._send_file()

    @override
    def _append(self, data: bytes | bytearray) -> None:
        if self._upload is None:
            super()._append(data)
            return
        self._upload.write(bytes(data))
        self.stored_bytes += len(data)

    def _send_file(self) -> None:
        """Send what the file holds, and go on in the bucket."""
        self._put_pending()
        if self.parts is not None:
            self._upload = _ListedParts(self._store, self.key, self.parts)
            self._opened().close()
            self._draft.unlink()
            return
        self._upload = upload = _begun(self._store, self.key, self._expected)
        with storage(self._draft, "upload it"):
            self._opened().close()
            with self._draft.open("rb") as file:
                while block := file.read(COPY_BYTES):
                    upload.write(block)
            self._draft.unlink()

    @property
    @override
    def modified_ns(self) -> int:
        return self._finished_ns if self.uploaded else super().modified_ns

    @override
    def finish(self) -> JsonlDataset:
        if self._upload is None:
            return super().finish()
        self._put_pending()
        self._end_frames()
        self._upload.finish()
        self.uploaded, self._finished_ns = True, time.time_ns()
        return self._dataset()

    @override
    def __exit__(self, *_: object) -> None:
        if self._upload is not None and not self.uploaded:
            self._upload.abort()
            with suppress(OSError):
                self._draft.unlink(missing_ok=True)
        super().__exit__()
