"""`FileColumn`, `RecordFile`: the file that an input key names, read within limits.

`FileFilter` and `FileCheck` are filters of such files.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any, BinaryIO, ClassVar, Final, Generic, Literal, TypeVar, cast

from dagster_dataops.datasets.file_values.image_pixels import DECODER_ERRORS
from dagster_dataops.errors import FileError, FileReferenceError
from dagster_dataops.files import FileReference
from dagster_dataops.foundation.override import override
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.rules import Filter, Judgement, RuleFilter
from dagster_dataops.records import Record

_WHOLE_BYTES: Final = 1 << 20
_TYPE_BYTES: Final = 1 << 16
LEAVE_OUT: Final = "replace the file, or leave it out"


class FileColumn:
    """The file that an input key names: a column, or a selector of one element.

    Args:
        key: The key.
        kinds: Prefixes of the media types that are read, such as ``image/``, or whole types, which
            errors leave out. A file whose bytes do not show its type is read, too.
    """

    def __init__(self, key: str, *kinds: str) -> None:
        self._key = FieldKey(key).checked_single("name one file")
        self._kinds = kinds

    @property
    def name(self) -> str:
        """The key."""
        return self._key.name

    def value(self, record: Record) -> Any:
        """Return the value of the record; ``None`` if it has none."""
        return self._key.value(record)

    def reference(self, record: Record) -> FileReference:
        """Return the reference to the file."""
        value, where = self.value(record), f"column {self._key.name!r}"
        if value is None:
            if self._key.name in record:
                raise FileReferenceError(where, "is null", LEAVE_OUT)
            columns = ", ".join(map(repr, record)) or "no column"
            problem = f"is missing or null; there is {columns:.300}"
            raise FileReferenceError(where, problem, "name the column with the file by input_key")
        return FileReference.of(value, where)

    def check_type(self, reference: FileReference, head: bytes) -> None:
        """Check the type of a file by its first bytes."""
        if not head:
            raise FileError(reference.file, "is empty", LEAVE_OUT)
        media_type = reference.media_type_of(head)
        if media_type is not None and not media_type.startswith(self._kinds):
            wanted = " or ".join(kind[:-1] for kind in self._kinds if kind.endswith("/"))
            raise FileError(reference.file, f"is {media_type}, no {wanted} file", LEAVE_OUT)

    def written(self, record: Record, value: Any, output_key: str | None) -> Record:
        """Return a record with a value in ``output_key``, by default in place of the reference."""
        return self._key.replaced(value, record, output_key)


class FileSource:
    """The files that a column names, of up to ``max_bytes``."""

    def __init__(self, column: FileColumn, max_bytes: int) -> None:
        self.column, self.max_bytes = column, max_bytes


_Source = TypeVar("_Source", bound=FileSource)


class _FileOfRecord(Generic[_Source]):
    """The file that a record names."""

    def __init__(self, source: _Source, record: Record) -> None:
        self._source, self._reference = source, source.column.reference(record)
        self.name = self._reference.file


class RecordFile(_FileOfRecord[_Source]):
    """The file of a record, which is read when its bytes are used."""

    def read(self) -> None:
        """Read the file, unless it is already read."""
        _ = self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        return self._reference.read(self._source.max_bytes)

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file, whose type is checked; for errors see `read` and `check_type`."""
        self._source.column.check_type(self._reference, self._bytes)
        return self._bytes


class HeadFile(_FileOfRecord[_Source]):
    """The file of a record of which only the head is decoded.

    A file of up to 1 MiB is read whole, and its digest is checked. Of a larger file only the parts
    that the decoder needs are read, and only size and version are checked.
    """

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Yield the file, whose type is checked, open for reading from any position."""
        most = self._source.max_bytes
        with self._reference.open(max_bytes=most, whole_bytes=_WHOLE_BYTES) as file:
            self._source.column.check_type(self._reference, file.read(_TYPE_BYTES))
            file.seek(0)
            parts = _DecodedFile(file)
            try:
                yield cast("BinaryIO", parts)
            finally:
                if parts.failure is not None:
                    raise parts.failure


class _DecodedFile:
    """A file for decoders, some of which hide its errors, or seek to a negative position.

    Attributes:
        failure: The error of the last read that failed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failure: FileError | None = None

    def read(self, size: int = -1, /) -> bytes:
        """Return bytes; all that are left by default."""
        try:
            return self._file.read(size)
        except FileError as error:
            self.failure = error
            raise

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer; return the number of bytes."""
        data = self.read(len(memoryview(buffer).cast("B")))
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Change the position; one before the beginning is the beginning."""
        start = 0 if whence == io.SEEK_SET else self._file.seek(0, whence)
        return self._file.seek(max(0, start + offset))

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()


@contextmanager
def decoding(file: str, verb: str = "decoded") -> Iterator[None]:
    """Raise errors of a decoder as the error of a file.

    Raises:
        FileError: A decoder failed in the block.
    """
    try:
        yield
    except (*DECODER_ERRORS, Warning) as error:
        said = str(error).strip().rstrip(".") or type(error).__name__
        raise FileError(file, f"cannot be {verb}: {said:.300}", LEAVE_OUT) from error


class FileFilter(RuleFilter):
    """A filter by measurements of a file. A subclass sets ``rules``, and defines `subject`."""

    def subject(self, record: Record) -> Any:
        """Return the file that the rules measure; it is read when a signal is computed."""
        raise NotImplementedError

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        subject = self.subject(record)
        if thorough:
            return self.judge_thoroughly(subject, known)
        return Judgement(self.first_reason(subject, known))


class FileCheck(Filter):
    """A filter of files that can be decoded whole.

    A subclass sets ``names``, and defines `reached`, `measured` and `reason`.

    Args:
        on_error: ``raise``, or ``drop`` files that cannot be decoded.
        **kwargs: See `Filter`.
    """

    names: ClassVar[tuple[str, ...]]
    """The names of the signals."""

    def __init__(self, *, on_error: Literal["raise", "drop"] = "raise", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._drops = on_error == "drop"

    def reached(self, record: Record) -> AbstractContextManager[Any]:
        """Return a context with the file of a record, read or on this machine.

        Raises:
            FileError: It cannot be reached, which is an error in any case.
        """
        raise NotImplementedError

    def measured(self, file: Any) -> tuple[Any, ...]:
        """Decode a file whole and return its signals, in the order of ``names``."""
        raise NotImplementedError

    def reason(self, signals: Mapping[str, Any]) -> str | None:
        """Return the reason to drop a file with these signals; ``None`` to keep it."""
        raise NotImplementedError

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        del thorough
        if known.keys() >= set(self.names):
            signals = {name: known[name] for name in self.names}
            return Judgement(self.reason(signals), signals)
        with self.reached(record) as file:
            try:
                signals = dict(zip(self.names, self.measured(file), strict=True))
            except FileError:
                if not self._drops:
                    raise
                return Judgement("broken")
        return Judgement(self.reason(signals), signals)
