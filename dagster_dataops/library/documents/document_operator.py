"""The base class of operators that read documents."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from dagster_dataops.data import data_register
from dagster_dataops.errors import DataOpsError, FileError, UnfitRecordError
from dagster_dataops.foundation.hashing.operational import Operational
from dagster_dataops.library.documents.formats.document import Limits
from dagster_dataops.library.documents.formats.document_opening import Documents, OpenDocument
from dagster_dataops.library.file_column import FileColumn
from dagster_dataops.library.option_values import needs_extra
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.options.ranges import AtLeastZeroFloat, PositiveInt
from dagster_dataops.operators.outcomes.record_context import OperatorContext
from dagster_dataops.records import Record

documents: Any = data_register.new_group("documents")

P = ParamSpec("P")
T = TypeVar("T")
WORKER_MEGABYTES: Final = 1024
"""Default memory limit of a worker process for its pages, in MB."""


class DocumentOperator(Operator):
    """An operator that reads documents.

    Args:
        input_key: Column of the reference to the file, or of its path or URL.
        password: Password of encrypted PDF files; a text, or a secret of Dagster or pydantic.
        unlock_key: Column of the password of a record, instead.
        max_bytes: Largest size of a file, and of what is unpacked of it.
        timeout_s: Elapsed seconds for a call; ``None`` for no limit.
        **kwargs: See `Operator`.
    """

    def __init__(
        self,
        input_key: str = "file",
        *,
        password: Annotated[Any, Operational] = None,
        unlock_key: str | None = None,
        max_bytes: PositiveInt = 512 << 20,
        timeout_s: AtLeastZeroFloat | None = 60.0,
        **kwargs: Any,
    ) -> None:
        settings = {"_timeout": timeout_s or 0, "_max_worker_memory_mb": WORKER_MEGABYTES}
        super().__init__(**{**settings, **kwargs})
        with needs_extra("The group documents", "documents"):
            import pypdfium2  # noqa: F401
        self._column = FileColumn(input_key)
        self._password, self._unlock_key = password, unlock_key
        self._limits = Limits(max_bytes)
        self._documents: Documents | None = None

    def open(self, context: OperatorContext) -> None:  # noqa: ARG002 - of subclasses
        """Begin to read documents."""
        self._documents = Documents(self._limits)

    def close(self) -> None:
        """Close the last document."""
        if self._documents is not None:
            self._documents.close()
            self._documents = None

    def opened(self, record: Record) -> OpenDocument:
        """Return the document of a record."""
        reference = self._column.reference(record)
        opening = self._documents = self._documents or Documents(self._limits)
        password = self._password_of(record)
        return readable(reference.file, "", opening.opened, reference, password)

    def _password_of(self, record: Record) -> str:
        if self._unlock_key is not None:
            return str(record.get(self._unlock_key) or "")
        for method in ("get_secret_value", "get_value"):  # of pydantic; of Dagster
            if callable(secret := getattr(self._password, method, None)):
                return str(secret() or "")
        return str(self._password or "")


def readable(name: str, what: str, read: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return what ``read`` returns; its errors name the file."""
    try:
        return read(*args, **named)
    except (DataOpsError, MemoryError, TimeoutError):
        raise
    except Exception as error:
        reason = f"{what} cannot be read ({type(error).__name__}: {error})".strip()
        raise FileError(name, reason, "look at the file, or leave it out") from error


def page_of(record: Record, page_key: str) -> int:
    """Return the number of the page that a record names, from 1."""
    page = record.get(page_key)
    if type(page) is not int or page < 1:
        msg = f"the column {page_key!r} has {page!r}; it needs the number of a page, from 1"
        raise UnfitRecordError(msg)
    return page


def pages_of(record: Record, page_key: str | None, opened: OpenDocument) -> Iterable[int]:
    """Return the page that a record names, or all pages of its document without a key."""
    if page_key is None:
        return range(1, opened.document.page_count + 1)
    return [page_of(record, page_key)]
