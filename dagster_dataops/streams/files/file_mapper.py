"""`FileMapper`: the bytes of a file, or of a part of it, by its name."""

import os
import threading
from collections import OrderedDict
from typing import Any, Final

from dagster_dataops.errors import PathEscapeError, StreamSourceError, UnfitRecordError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.arguments import check_count
from dagster_dataops.streams.files.descriptors import naming_path, open_descriptor

_CACHED: Final = 100  # descriptors; many systems allow a process about 1,000
_LARGEST: Final = (1 << 64) - 1
_FORM: Final = "name, name:offset or name:offset:size"


class FileMapper:
    """Returns the bytes of a file by its name, as fairseq2's class of this name.

    A name can choose a part: ``big.bin:1024:48`` is 48 bytes from byte 1,024, and ``big.bin:1024``
    all bytes from there on. The last files are kept open. It can be used by several threads, and
    sent to processes.

    Args:
        root_dir: The folder of relative names. Names must not lead out of it; without a folder,
            any file is read.
        cached_fd_count: The number of files to keep open; 100 if ``None``.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("big.bin").write_bytes(b"0123456789")
        >>> FileMapper()("big.bin:3:4")
        {'path': 'big.bin:3:4', 'data': b'3456'}
    """

    def __init__(
        self,
        root_dir: "str | os.PathLike[str] | None" = None,
        cached_fd_count: int | None = None,
    ) -> None:
        if cached_fd_count is not None:
            check_count("FileMapper", "cached_fd_count", cached_fd_count, 1)
        self.root_dir = None if root_dir is None else os.fspath(root_dir)
        self.cached_fd_count = cached_fd_count
        self._open: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, pathname: str) -> dict[str, Any]:
        """Return ``{"path": pathname, "data": bytes}``.

        Raises:
            PathEscapeError: The name leads out of ``root_dir``; also a ValueError.
            StreamSourceError: The file cannot be read.
            UnfitRecordError: The name is malformed, or the file has no such part; also a
                ValueError.
        """
        name, offset, size = _divided(pathname)
        path = self._path(name)
        with self._lock, naming_path(path):
            descriptor = self._descriptor(path)
            data = _read(descriptor, pathname, offset, size)
        return {"path": pathname, "data": data}

    def _path(self, name: str) -> str:
        if self.root_dir is None:
            return name
        root = os.path.abspath(self.root_dir)  # noqa: PTH100 - links stay
        path = os.path.normpath(os.path.join(root, name))  # noqa: PTH118 - links stay
        if os.path.commonpath([root, path]) != root:
            raise PathEscapeError(root, name)
        return path

    def _descriptor(self, path: str) -> int:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path]
        self._open[path] = descriptor = open_descriptor(path)
        if len(self._open) > (self.cached_fd_count or _CACHED):
            os.close(self._open.popitem(last=False)[1])
        return descriptor

    def close(self) -> None:
        """Close the files. They are opened again when they are read."""
        with self._lock:
            while self._open:
                os.close(self._open.popitem()[1])

    @override
    def __reduce__(self) -> Any:
        return FileMapper, (self.root_dir, self.cached_fd_count)

    def __del__(self) -> None:
        """Close the files."""
        if getattr(self, "_open", None):
            self.close()


def _divided(pathname: object) -> tuple[str, int, int | None]:
    """Return the name, the first byte and the number of bytes of a part."""
    if not isinstance(pathname, str):
        kind = type(pathname).__name__
        raise UnfitRecordError(f"FileMapper takes the name of a file, a text; got a {kind}")
    parts = [part.strip() for part in pathname.split(":")]
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise UnfitRecordError(f"FileMapper: {pathname!r} is malformed; it must be {_FORM}")
    numbers = [
        _number(pathname, what, part)
        for what, part in zip(("offset", "size"), parts[1:], strict=False)
    ]
    return parts[0], numbers[0] if numbers else 0, numbers[1] if len(numbers) > 1 else None


def _number(pathname: str, what: str, part: str) -> int:
    if not (part.isascii() and part.isdigit()) or int(part) > _LARGEST:
        reason = f"the {what} of {pathname!r} is {part!r}; it must be a number below 2^64"
        raise UnfitRecordError(f"FileMapper: {reason}")
    return int(part)


def _read(descriptor: int, pathname: str, offset: int, size: int | None) -> bytes:
    whole = os.fstat(descriptor).st_size
    end = whole if size is None else offset + size
    if offset > whole or end > whole:
        reason = f"{pathname!r} ends at byte {max(offset, end):,}, and the file has {whole:,} bytes"
        raise UnfitRecordError(f"FileMapper: {reason}")
    parts, at = [], offset
    while at < end:
        part = os.pread(descriptor, end - at, at)
        if not part:
            raise StreamSourceError(pathname, f"ends at byte {at:,}, in the part that is read")
        parts.append(part)
        at += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
