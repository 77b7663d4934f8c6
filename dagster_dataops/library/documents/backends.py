"""Read a page by the backends of an operator, in order, until one finds content."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import DefinitionError, FileError
from dagster_dataops.foundation.override import override
from dagster_dataops.library.documents.document_operator import readable
from dagster_dataops.library.documents.formats.document import Document
from dagster_dataops.library.documents.formats.document_opening import OpenDocument
from dagster_dataops.library.option_values import needs_extra

Backend: TypeAlias = str | Callable[[str, int], Any]
BUILT_IN: Final = "pypdfium2"
DOCLING: Final = "docling"
_WHOLE: Final = "SUCCESS"  # the status of docling
_LIMITS: Final = (MemoryError, TimeoutError)
_DECRYPT: Final = "read it by 'pypdfium2', or save it without a password"
_TRY_OTHERS: Final = "try another backend by retry_backends, or leave the page out"


class Reader(ABC):
    """Reads pages."""

    def start(self) -> None:  # noqa: B027 - most have nothing to load
        """Load models and packages, outside of the memory limit of a page."""

    @abstractmethod
    def read(self, opened: OpenDocument, page: int) -> Any:
        """Return the content of a page; ``None`` or an empty value if nothing is found."""


class DocumentReader(Reader):
    """Reads pages by a method of `Document`."""

    def __init__(self, method: Callable[[Document, int], Any]) -> None:
        self._method = method

    @override
    def read(self, opened: OpenDocument, page: int) -> Any:
        return self._method(opened.document, page)


class FunctionReader(Reader):
    """Reads pages by a function of the path and the number of the page."""

    def __init__(self, function: Callable[[str, int], Any]) -> None:
        self._function = function

    @override
    def read(self, opened: OpenDocument, page: int) -> Any:
        return self._function(str(opened.path), page)


class DoclingReader(Reader):
    """Reads pages by docling. For PDF files it needs its models, which it fetches or finds."""

    def __init__(self, feature: str, method: Callable[[Any], Any]) -> None:
        with needs_extra(f"{feature} with the backend 'docling'", "docling"):
            import docling.document_converter  # noqa: F401
        self._method = method
        self._converter: Any = None
        self._no_models: Exception | None = None

    @override
    def start(self) -> None:
        from docling.datamodel.base_models import InputFormat
        from docling.document_converter import DocumentConverter

        self._converter, self._no_models = DocumentConverter(), None
        try:
            self._converter.initialize_pipeline(InputFormat.PDF)
        except Exception as error:  # noqa: BLE001 - of the hub, of files and of docling
            self._no_models = error  # other formats need none

    @override
    def read(self, opened: OpenDocument, page: int) -> Any:
        is_pdf = opened.document.format == "pdf"
        if not is_pdf and page > 1:
            return None  # docling gives such a document as a whole, with its first page
        if self._converter is None:
            self.start()
        if is_pdf and self._no_models is not None:
            raise _without_models(opened.name, self._no_models)
        if is_pdf and opened.password:
            raise FileError(opened.name, "is encrypted, and docling gets no password", _DECRYPT)
        only = {"page_range": (page, page)} if is_pdf else {}
        try:
            result = self._converter.convert(opened.path, **only)
        except Exception as error:
            raise _cause_of(opened.name, error) from error
        if result.status.name != _WHOLE:
            problems = "; ".join(str(error.error_message) for error in result.errors)
            problem = f"is read in part by docling ({result.status.name}: {problems:.500})"
            raise FileError(opened.name, problem, _TRY_OTHERS)
        return self._method(result.document)


def _cause_of(name: str, error: BaseException) -> BaseException:
    """Return the error of a page for one of docling, which hides others, such as limits."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    limit = next((cause for cause in causes if isinstance(cause, _LIMITS)), None)
    if limit is not None:
        return limit
    said = "; ".join(f"{type(cause).__name__}: {cause}" for cause in causes)
    return FileError(name, f"cannot be read by docling ({said:.500})", _TRY_OTHERS)


def _without_models(name: str, error: Exception) -> FileError:
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    problem = (
        f"needs the models of docling, which cannot be loaded ({said:.300}): fetch them by "
        "`docling-tools models download` on a machine with a network, and set "
        "DOCLING_ARTIFACTS_PATH to their folder"
    )
    return FileError(name, problem, "then retry the failed records")


class Chain:
    """Reads a page by the first backend that finds content on it.

    Args:
        option: The option with the backends, for errors.
        backends: Names and functions, in the order in which they are tried.
        known: The readers by name; called when one is needed.
    """

    def __init__(
        self, option: str, backends: Sequence[Backend], known: Mapping[str, Callable[[], Reader]]
    ) -> None:
        if not backends:
            msg = f"{option} is {backends!r}; give a list of backends, such as ['{BUILT_IN}']"
            raise DefinitionError(msg)
        self._readers: list[tuple[str, Reader]] = []
        for backend in backends:
            if callable(backend):
                name = getattr(backend, "__name__", type(backend).__name__)
                self._readers.append((name, FunctionReader(backend)))
            elif backend in known:
                self._readers.append((backend, known[backend]()))
            else:
                names = ", ".join(map(repr, known))
                msg = f"{option} has {backend!r}; use {names} or a function of (path, page)"
                raise DefinitionError(msg)

    def start(self) -> None:
        """Load the models and packages of the backends."""
        for _, reader in self._readers:
            reader.start()

    def read(self, opened: OpenDocument, page: int) -> tuple[Any, str | None]:
        """Return the content of a page and its backend; ``None`` twice for no content."""
        failures: list[str] = []
        for name, reader in self._readers:
            try:
                value = readable(opened.name, f"its page {page:,}", reader.read, opened, page)
            except FileError as error:
                failures.append(f"{name}: {error.found}")
                continue
            if value and (not isinstance(value, str) or value.strip()):
                return value, name
        if failures:
            problem = (
                f"its page {page:,} has no content that a backend can read ({'; '.join(failures)})"
            )
            raise FileError(opened.name, problem, _TRY_OTHERS)
        return None, None
