"""`FileReference`: a file that a record names."""

import io
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, BinaryIO, Final

from dagster_dataops.datasets.file_values.file_reads import READS
from dagster_dataops.datasets.file_values.media_types import (
    same_type,
    type_of_content,
    type_of_name,
)
from dagster_dataops.datasets.file_values.opened_file import OpenedFile, is_stored
from dagster_dataops.errors import FileChangedError, FileError, FileReferenceError

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(\s*;.*)?")
_BLOCK_BYTES: Final = 1 << 20
_AS_IT_IS: Final = "name the file as it is now, or restore it"


@dataclass(frozen=True, slots=True)
class FileReference:
    """A file that a record names: ``{"file": "scans/7.png", "size": 1234, "digest": ...}``.

    Attributes:
        file: A path, a URL, or ``<tar, folder or jsonl file>#<name>`` for a file in a store. A path
            with ``#`` in it that exists is a plain file. Relative paths are below the working
            directory; ``files/ab/cdef...``, the names of files that operators made, below
            the root of the results.
        size: The number of bytes; ``None`` if the record does not tell it.
        digest: ``sha256:`` and 64 hexadecimal digits; ``None`` if the record does not tell it.
        media_type: The media type, such as ``image/png``; ``None`` if the record does not tell it.
        version: The version of a file without a digest: its time of modification, or what its
            store tells; ``None`` if the record does not tell it.
    """

    file: str
    size: int | None = None
    digest: str | None = None
    media_type: str | None = None
    version: str | None = None

    @classmethod
    def of(cls, value: object, where: str = "the value") -> "FileReference":
        """Return the reference that a value of a record is: a text, or a dict with ``file``.

        Further keys of a dict are ignored.

        Args:
            value: The value.
            where: The place of the value, such as its column, for errors.

        Raises:
            FileReferenceError: The value is no reference.
        """
        if isinstance(value, FileReference):
            return value
        if isinstance(value, (str, os.PathLike)):
            value = {"file": os.fspath(value)}
        if not isinstance(value, Mapping):
            problem = f"is {type(value).__name__}, no reference to a file"
            raise FileReferenceError(where, problem, 'give a path, a URL or {"file": path}')
        reference = cls(*(value.get(name) for name in _FIELDS))  # type: ignore[arg-type]
        reference._check(where)
        return reference

    def _check(self, where: str) -> None:
        file: object = self.file
        if not isinstance(file, str) or not file or "\0" in file:
            problem = f"has the file {file!r}"
            raise FileReferenceError(where, problem, "give a path or a URL as the text of 'file'")
        size = self.size
        if size is not None and (type(size) is not int or size < 0):
            problem = f"has the size {size!r}"
            raise FileReferenceError(f"{where} ({file})", problem, "give the number of bytes")
        for name, form, wanted in _FORMS:
            text = getattr(self, name)
            if text is not None and not (isinstance(text, str) and form.fullmatch(text)):
                problem = f"has the {name} {text!r}"
                raise FileReferenceError(f"{where} ({file})", problem, f"give {wanted}")

    def to_json(self) -> dict[str, Any]:
        """Return the value of a record: a dict without what is not told."""
        told = ((name, getattr(self, name)) for name in _FIELDS)
        return {name: value for name, value in told if value is not None}

    @property
    def name(self) -> str:
        """The last part of the path, URL or name in a store."""
        path = self.file.rpartition("#")[2] or self.file
        if "://" in path:
            path = re.split(r"[?#]", path)[0]
        return PurePosixPath(path).name

    def read(self, max_bytes: int | None = None) -> bytes:
        """Return the content of the file. Its size and digest are checked if they are told.

        Args:
            max_bytes: The largest size; any if ``None``.

        Raises:
            FileError: There is no such file, it cannot be read, or it is larger.
            FileChangedError: It is not the file that the record names.
        """
        with opened(self.file) as file:
            self._check_state(file)
            self._note(file)
            self._check_limit(file.size, max_bytes)
            data = self._checked(file, max_bytes)
            file.check_unchanged()
        return data

    def _checked(self, file: OpenedFile, max_bytes: int | None) -> bytes:
        """Return the content of a file whose size and digest are checked."""
        data = file.read_all(None if max_bytes is None else max_bytes + 1)
        self._check_limit(len(data), max_bytes)
        digest = f"sha256:{sha256(data).hexdigest()}" if self.digest else None
        self._check_content(len(data), digest)
        return data

    @contextmanager
    def open(self, *, max_bytes: int | None = None, whole_bytes: int = 0) -> Iterator[BinaryIO]:
        """Yield the file, open for reading from any position; only what is read is fetched.

        Its size and version are checked if they are told; its digest only if the file is read
        whole.

        Args:
            max_bytes: The largest size; any if ``None``.
            whole_bytes: The size up to which the file is read whole, and its digest is checked.

        Raises:
            FileError: There is no such file, it cannot be read, or it is larger.
            FileChangedError: It is not the file that the record names, or was replaced meanwhile.
        """
        with opened(self.file) as file:
            self._check_state(file)
            self._note(file)
            self._check_limit(file.size, max_bytes)
            unlimited = file.size is None and max_bytes is not None
            if unlimited or (file.size is not None and file.size <= whole_bytes):
                yield io.BytesIO(self._checked(file, max_bytes))
            else:
                yield file.stream()
            file.check_unchanged()

    @contextmanager
    def local(self, max_bytes: int | None = None) -> Iterator[Path]:
        """Yield the path of the file on this machine: its own, or that of a copy.

        The copy is deleted at the end. Size and digest are checked if they are told.

        Args:
            max_bytes: The largest size; any if ``None``.

        Raises:
            FileError: There is no such file, it cannot be read, or it is larger.
            FileChangedError: It is not the file that the record names, or was replaced meanwhile.
        """
        with opened(self.file) as file:
            self._check_state(file)
            self._note(file)
            self._check_limit(file.size, max_bytes)
            if file.path is not None:
                if self.digest:
                    self._check_content(*_digested(file, None))
                yield file.path
            else:
                with tempfile.TemporaryDirectory(prefix="dataops-file-") as folder:
                    copy = Path(folder, self.name or "file")
                    with copy.open("wb") as target:
                        self._check_content(*_digested(file, target))
                    yield copy
            file.check_unchanged()

    def with_facts(self, *, digest: bool = False) -> "FileReference":
        """Return the reference with size, media type and version, or digest, of the file as it is.

        Args:
            digest: Whether the file is read for its digest; else its version is told.

        Raises:
            FileError: There is no such file, or it cannot be read.
            FileChangedError: It is not the file that the record names.
        """
        with opened(self.file) as file:
            self._check_state(file)
            self._note(file)
            return self.as_opened(file, digest=digest)

    def as_opened(self, file: OpenedFile, *, digest: bool) -> "FileReference":
        """Return the reference with the facts of an open file; see `with_facts`."""
        head = file.read_at(_BLOCK_BYTES, 0)
        kind = self.media_type or type_of_content(head) or type_of_name(self.file)
        size, content_digest = _digested(file, None) if digest else (file.size, self.digest)
        if digest:
            self._check_content(size, content_digest)
        file.check_unchanged()
        version = file.version if content_digest is None else None
        return FileReference(self.file, size, content_digest, kind, version)

    def media_type_of(self, data: bytes) -> str | None:
        """Return the media type of the file by its content, else by its name.

        Args:
            data: Its content, or the beginning.

        Raises:
            FileError: Its content is of another type than its name or the record tells.
        """
        media_type = type_of_content(data)
        for told, source in (
            (self.media_type, "the record"),
            (type_of_name(self.file), "its name"),
        ):
            if told is not None and media_type is not None and not same_type(media_type, told):
                reason = f"is {media_type} by its content, {told} by {source}"
                raise FileError(self.file, reason, "correct the name, or leave the file out")
        return media_type or self.media_type or type_of_name(self.file)

    def _check_state(self, file: OpenedFile) -> None:
        if self.size is not None and file.size is not None and file.size != self.size:
            problem = f"has {file.size:,} bytes; the record names {self.size:,}"
            raise FileChangedError(self.file, problem, _AS_IT_IS)
        if self.version is not None and file.version != self.version:
            problem = f"has the version {file.version}; the record names {self.version}"
            raise FileChangedError(self.file, problem, _AS_IT_IS)

    def _note(self, file: OpenedFile) -> None:
        """Note that the file was read, unless the record or its name identifies its content."""
        if self.digest is None and self.version is None and not is_stored(self.file):
            READS.note(self.file, file.state)

    def _check_limit(self, size: int | None, max_bytes: int | None) -> None:
        if size is not None and max_bytes is not None and size > max_bytes:
            problem = f"has more than max_bytes={max_bytes:,} bytes"
            raise FileError(self.file, problem, "raise the limit, or leave the file out")

    def _check_content(self, size: int | None, digest: str | None) -> None:
        if self.size is not None and size != self.size:
            problem = f"has {size:,} bytes; the record names {self.size:,}"
            raise FileChangedError(self.file, problem, _AS_IT_IS)
        if self.digest is not None and digest != self.digest:
            problem = f"has the digest {digest}; the record names {self.digest}"
            raise FileChangedError(self.file, problem, _AS_IT_IS)


_FIELDS: Final = ("file", "size", "digest", "media_type", "version")
_FORMS: Final = (
    ("digest", _DIGEST, "'sha256:' and 64 hexadecimal digits"),
    ("media_type", _TYPE, "a media type, such as 'image/png'"),
    ("version", re.compile(r".+"), "a text"),
)


def identified(file: str, *, digest: bool, options: Mapping[str, Any]) -> FileReference:
    """Return the reference to a file as it is; the read is not noted.

    Args:
        file: A path or URL.
        digest: Whether it tells the digest of the file; else its version.
        options: The arguments of fsspec's file system, for a URL.

    Raises:
        FileError: There is no such file, or it cannot be read.
    """
    with opened(file, options) as opened_file:
        return FileReference(file).as_opened(opened_file, digest=digest)


def opened(
    name: str, options: Mapping[str, Any] = MappingProxyType({})
) -> AbstractContextManager[OpenedFile]:
    """Return a context with the file that a reference names, open inside the block."""
    from dagster_dataops.datasets.file_values import cached_file  # most runs read no file

    return cached_file.opened(name, options)


def _digested(file: OpenedFile, copy: BinaryIO | None) -> tuple[int, str]:
    """Return the size and the digest of a file; write its bytes to another one."""
    digest, size = sha256(), 0
    for block in file.blocks():
        digest.update(block)
        size += len(block)
        if copy is not None:
            copy.write(block)
    return size, f"sha256:{digest.hexdigest()}"
