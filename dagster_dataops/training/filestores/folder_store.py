"""`FolderStore`: the files below a folder by relative path, here or by URL."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from dagster_dataops.errors import InputError, PathEscapeError, StreamSourceError
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.files.listing import files_below, relative_path
from dagster_dataops.streams.files.remote import (
    file_details,
    file_system,
    identity_of,
    is_url,
    list_urls,
    source_error,
)
from dagster_dataops.training.filestores.energon.energon_layout import exists, joined
from dagster_dataops.training.filestores.source_info import SourceInfo
from dagster_dataops.training.filestores.store import FileStore


class FolderStore(FileStore):
    """The files below a folder by relative path, such as ``sub/x.jpg``.

    Links inside the folder are followed if they stay in it.

    Args:
        path: The folder: an absolute path or a URL.
        storage_options: The arguments of fsspec's file system.

    Raises:
        InputError: There is no such folder, or it is a file.
    """

    def __init__(self, path: str, storage_options: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._options = dict(storage_options or {})
        if is_url(path) and ".jsonl" in path.rpartition("/")[2]:
            reason = "is a remote jsonl file; download it, decompress it, and give its local path"
            raise InputError(path, reason)
        if not is_url(path) and not Path(path).is_dir():
            reason = "there is no such folder"
            if Path(path).is_file():
                reason = "is a file; it must be a folder, tar shards or a .jsonl file"
            raise InputError(path, reason)

    @cached_property
    def _top(self) -> Path:
        return Path(self.path).resolve()

    @override
    def read(self, name: str) -> tuple[bytes, SourceInfo]:
        plain = self.confined(name)
        data = self._remote(plain) if is_url(self.path) else self._local(plain)
        return data, SourceInfo.of(self.path, name, self.path, [name])

    @override
    def place(self, name: str) -> str:
        plain = self.confined(name)
        if is_url(self.path):
            return joined(self.path, plain)
        path = self._path(plain)
        if not path.is_file():
            raise self.missing(name)
        return str(path)

    def _path(self, name: str) -> Path:
        """Return the path of a file in a local folder, which need not exist."""
        path = self._top / name
        if not path.resolve().is_relative_to(self._top):
            raise PathEscapeError(self.shown, name)
        return path

    def _local(self, name: str) -> bytes:
        path = self._top / name
        try:
            return self._path(name).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise self.missing(name) from None
        except OSError as error:
            raise StreamSourceError(str(path), f"cannot be read: {error.strerror}") from error

    def _remote(self, name: str) -> bytes:
        url = joined(self.path, name)
        system, path = file_system(url, self._options)
        try:
            data: bytes = system.cat_file(path)
        except FileNotFoundError:
            raise self.missing(name) from None
        except Exception as error:
            raise source_error(url, error) from error
        return data

    @override
    def names(self) -> Iterator[str]:
        if is_url(self.path):
            system, top = file_system(self.path, self._options)
            prefix = system.unstrip_protocol(top).rstrip("/")
            paths = [relative_path(url, prefix) for url in list_urls(self.path, self._options)]
        else:
            paths = [relative_path(str(path), self.path) for path in files_below(Path(self.path))]
        yield from sorted(paths)

    @override
    def version(self) -> str:
        """Return a digest of names, sizes and times of all files."""
        if is_url(self.path):
            urls = [joined(self.path, name) for name in self.names()]
            return digest([[url, identity_of(file_details(url, self._options))] for url in urls])
        files = []
        for name in self.names():
            status = (self._top / name).stat()
            files.append([name, status.st_size, status.st_mtime_ns])
        return digest(files)

    @override
    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            plain = self.confined(name)
        except PathEscapeError:
            return False
        if is_url(self.path):
            return exists(joined(self.path, plain), self._options)
        return (self._top / plain).is_file()
