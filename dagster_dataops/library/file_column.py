"""`FileColumn`: the file that an input key names, read within limits and by its type."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from typing_extensions import override

from dagster_dataops.errors import FileError, FileReferenceError
from dagster_dataops.files import FileReference
from dagster_dataops.library.field_keys import FieldKey
from dagster_dataops.library.filters.rules import Judgement, RuleFilter
from dagster_dataops.records import Record

LEAVE_OUT: Final = "replace the file, or leave it out"


class ReadFile(NamedTuple):
    """The content of a file of a record.

    Attributes:
        name: Its path or URL, for errors.
        data: Its bytes.
    """

    name: str
    data: bytes


class FileColumn:
    """The file that an input key names: a column, or a selector of one element.

    Args:
        key: The key.
        kinds: What the media type of the file begins with, such as ``image/``; several for files
            of several kinds. Files of a type that their bytes do not tell are read, too.

    Raises:
        DefinitionError: The key may select several elements.
    """

    def __init__(self, key: str, *kinds: str) -> None:
        self._key = FieldKey(key).checked_single("name one file")
        self._kinds = kinds

    @property
    def name(self) -> str:
        """The key."""
        return self._key.name

    def value(self, record: Record) -> Any:
        """Return what the record has; ``None`` if it has nothing."""
        return self._key.value(record)

    def reference(self, record: Record) -> FileReference:
        """Return the reference to the file.

        Raises:
            FileReferenceError: The record has none.
        """
        value, where = self.value(record), f"column {self._key.name!r}"
        if value is None:
            columns = ", ".join(map(repr, record)) or "no column"
            found = f"is missing or null; there is {columns:.300}"
            raise FileReferenceError(where, found, "name the column with the file by input_key")
        return FileReference.of(value, where)

    def check_type(self, reference: FileReference, head: bytes) -> None:
        """Check the type of a file by its first bytes.

        Raises:
            FileError: It is empty, or of another type than it must be.
        """
        if not head:
            raise FileError(reference.file, "is empty", LEAVE_OUT)
        found = reference.media_type_of(head)
        if found is not None and not found.startswith(self._kinds):
            wanted = " or ".join(kind.rstrip("/") for kind in self._kinds)
            raise FileError(reference.file, f"is {found}, no {wanted} file", LEAVE_OUT)

    def written(self, record: Record, value: Any, output_key: str | None) -> Record:
        """Return a record with a value in ``output_key``, by default in place of the reference."""
        return self._key.replaced(value, record, output_key)


@contextmanager
def decoding(file: str, verb: str = "decoded") -> Iterator[None]:
    """Raise errors of a decoder as the error of a file.

    Raises:
        FileError: A decoder failed in the block.
    """
    try:
        yield
    except _OF_DECODERS as error:
        said = str(error).strip().rstrip(".") or type(error).__name__
        raise FileError(file, f"cannot be {verb}: {said:.300}", LEAVE_OUT) from error


_OF_DECODERS: Final = (
    ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError, Warning,
)  # fmt: skip
"""What decoders raise for damaged files; `FileError` and lack of memory are not among them."""


class FileFilter(RuleFilter):
    """A filter by rules about a file. A subclass sets ``rules``, and defines `subject`."""

    def subject(self, record: Record) -> Any:
        """Return what the rules are about; it reads the file when a signal is computed."""
        raise NotImplementedError

    @override
    def judge(self, record: Record, known: Mapping[str, Any], *, thorough: bool) -> Judgement:
        subject = self.subject(record)
        if thorough:
            return self.judge_thoroughly(subject, known)
        return Judgement(self.first_reason(subject, known))
