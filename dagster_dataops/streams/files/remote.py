"""Files by URL, read with fsspec.

fsspec's file systems raise the exceptions of the libraries below them. All of these become an
error that names the URL. After a broken connection, reading continues at the same position.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from dagster_dataops.errors import StreamSourceError

_RETRY_DELAYS: Final = (0.2, 1.0, 4.0)  # seconds before each retry
_SKIP_BYTES: Final = 1 << 20  # bytes read at once when a server ignores the requested range
_CHECKSUMS: Final = (
    "ETag", "etag", "md5Hash", "Content-MD5", "content_md5", "md5", "CRC", "Digest", "sha256",
)  # fmt: skip
_TIMES: Final = (
    "Last-Modified", "LastModified", "last_modified", "mtime", "modified", "updated", "created",
)  # fmt: skip

Options = Mapping[str, Any]


def is_url(path: str) -> bool:
    """Return whether a path is an fsspec URL, for example ``s3://…`` or ``zip://…::…``."""
    return "://" in path


def file_system(url: str, options: Options) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path in it."""
    import fsspec

    from dagster_dataops.streams.files.logins import with_login

    try:
        system, path = fsspec.url_to_fs(url, **with_login(url, options))
    except ImportError as error:
        reason = f"its file system needs a package that is not installed: {error}"
        raise StreamSourceError(url, reason) from error
    except Exception as error:
        raise source_error(url, error) from error
    return system, path


def source_error(url: str, error: Exception) -> StreamSourceError:
    """Return a `StreamSourceError` for ``error``, with a remedy."""
    if isinstance(error, StreamSourceError):
        return error
    if isinstance(error, FileNotFoundError):
        cause = "" if error.__cause__ is None else f" ({error.__cause__})"
        return StreamSourceError(url, f"there is no such file, or it cannot be reached{cause}")
    if isinstance(error, PermissionError):
        return StreamSourceError(
            url, f"access denied: {error}; pass credentials in storage_options"
        )
    kind = type(error).__name__
    advice = "check the address, the network and storage_options; a stream resumes from its state"
    return StreamSourceError(url, f"cannot be read: {kind}: {error}; {advice}")


def file_details(url: str, options: Options) -> dict[str, Any]:
    """Return the details that a server reports about a file: its size, often a checksum or a time.

    Raises:
        StreamSourceError: The file cannot be reached.
    """
    system, path = file_system(url, options)
    try:
        return dict(system.info(path))
    except Exception as error:
        raise source_error(url, error) from error


def identity_of(details: Mapping[str, Any]) -> list[object] | None:
    """Return size and checksum or time from file details; ``None`` if neither is reported."""
    for names in (_CHECKSUMS, _TIMES):
        for name in names:
            if details.get(name):
                return [details.get("size"), str(details[name])]
    return None


class RemoteFile:
    """A file by URL that can be read from any position.

    Args:
        url: The URL.
        options: The arguments of fsspec's file system.
        ahead: Whether more may be fetched than is read, for later reads.
    """

    def __init__(self, url: str, options: Options, *, ahead: bool = True) -> None:
        self._url, self._options, self._ahead = url, options, ahead
        self._system: Any = None  # kept: some file systems close their files when they are deleted
        self._file: Any = None
        self._next_offset = 0  # the offset of the next read
        self._at = 0  # the offset of the open file
        self._supports_ranges = True
        self._identity: list[object] | None = None

    def seek(self, offset: int, /) -> None:
        """Set the offset of the next read."""
        self._next_offset = offset

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes; empty at the end.

        Raises:
            StreamSourceError: The file cannot be read, even after retries.
        """
        pauses = iter(_RETRY_DELAYS)
        while True:
            try:
                part = self._read(size)
            except (FileNotFoundError, PermissionError, StreamSourceError) as error:
                raise source_error(self._url, error) from error
            except Exception as error:  # file systems raise exceptions of any library
                self.close()
                if self._supports_ranges and "range requests" in str(error):
                    self._supports_ranges = False  # the server sends the file only from its start
                    continue
                pause = next(pauses, None)
                if pause is None:
                    raise source_error(self._url, error) from error
                time.sleep(pause)
            else:
                self._at += len(part)
                self._next_offset = self._at
                return part

    def _read(self, size: int) -> bytes:
        if self._file is None or self._next_offset < self._at:
            self._open()
        if self._next_offset != self._at:
            self._seek_file()
        part: bytes = self._file.read(size)
        total = self._file.size if hasattr(self._file, "size") else None
        if not part and isinstance(total, int) and self._at < total:
            msg = f"it ended after {self._at:,} of {total:,} bytes"
            raise EOFError(msg)
        return part

    def _open(self) -> None:
        self.close()
        self._system, path = file_system(self._url, self._options)
        how: dict[str, Any] = {} if self._ahead else {"cache_type": "none"}
        if not self._supports_ranges:
            how = {"block_size": 0}
        self._file = self._system.open(path, "rb", **how)
        identity = identity_of(getattr(self._file, "details", None) or {})
        if None not in (identity, self._identity) and identity != self._identity:
            raise StreamSourceError(self._url, "changed while it was read; read it again")
        self._identity = identity

    def _seek_file(self) -> None:
        try:
            self._file.seek(self._next_offset)
            self._at = self._next_offset
        except (ValueError, OSError):  # not seekable: read up to the offset
            while self._at < self._next_offset:
                part = self._file.read(min(_SKIP_BYTES, self._next_offset - self._at))
                if not part:
                    self._next_offset = self._at
                self._at += len(part)

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        if self._file is not None:
            self._file.close()
        self._file, self._at = None, 0


def list_urls(url: str, options: Options, *, wild: bool = False) -> list[str]:
    """Return the URLs of all files below a folder, or of those that match a pattern.

    Raises:
        StreamSourceError: The folder cannot be listed.
    """
    system, path = file_system(url, options)
    try:
        names = system.glob(path) if wild else system.find(path)
        files = [name for name in names if not wild or system.isfile(name)]
    except Exception as error:
        raise source_error(url, error) from error
    return [_url_of(system, name, url) for name in files]


def _url_of(system: Any, name: str, url: str) -> str:
    chain = url.split("::")
    if len(chain) > 1:  # zip://name::https://…: names belong to the first part
        return "::".join([f"{chain[0].partition('://')[0]}://{name.lstrip('/')}", *chain[1:]])
    full: str = system.unstrip_protocol(name)
    return full
