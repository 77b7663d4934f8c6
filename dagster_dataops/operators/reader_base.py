"""Readable: what every reader is, an operator that takes nothing and gives a stream of records.

A pipeline's source in plain Python (``ppl(reader)``) and in Dagster
(``build_definitions(ppl, source=reader)``).
"""

import inspect
import typing
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from dagster_dataops.errors import InputError, OperatorDefinitionError
from dagster_dataops.operators.declared_columns import Declaration, column_types

if TYPE_CHECKING:
    from dagster_dataops.operators.spec import Invocation

_OF_RECORDS: Final = ("forward", "forward_batch_input", "sketch")
_STREAMS: Final = frozenset({"DataPipeline", "DataPipelineBuilder"})


class Readable:
    """A reader.

    Attributes:
        columns: The types of all columns of its records; ``None`` if it does not say.
    """

    columns: Declaration | None = None

    @cached_property
    def name(self) -> str:
        """Its name, which that of its asset ends in; assign another where two would be the same."""
        return type(self).__name__

    @property
    def description(self) -> str:
        """Its docstring."""
        return inspect.cleandoc(type(self).__doc__ or "")

    def stream(self) -> Any:
        """Return the stream of its records."""
        reason = "it is no reader without stream(), or read_from() of dagster_dataops.Reader"
        raise OperatorDefinitionError(type(self).__name__, reason)

    def __iter__(self) -> Iterator[Any]:
        """Yield the records, from the start."""
        return iter(self.stream())

    def __call__(self, data: object = None) -> Any:
        """Return all records, as a list.

        Raises:
            InputError: Something was given to read from.
        """
        if data is not None:
            reason = f"the reader {self.name} takes none; it reads what its options say"
            raise InputError(f"of type {type(data).__name__}", reason)
        return list(self)

    def column_types(self) -> dict[str, Any] | None:
        """Return the types of its columns; ``None`` if it does not say."""
        if self.columns is None:
            return None
        invocation: Invocation | None = getattr(self, "__dataops__", None)
        options = {} if invocation is None else invocation.options
        return column_types(self.name, "columns", self.columns, options)


class FunctionReader(Readable):
    """A reader that was registered as a function of its options, which returns the stream."""

    __dataops__: "Invocation"

    @override
    def stream(self) -> Any:
        """Return what the function returns.

        Raises:
            OperatorDefinitionError: That is no stream.
        """
        spec = self.__dataops__.spec
        made = spec.target(**self.__dataops__.options)
        if not is_stream(type(made)):
            reason = (
                f"it returned a {type(made).__name__}; a reader returns a stream, such as "
                "read_jsonl(path) or read_sequence(records)"
            )
            raise OperatorDefinitionError(spec.qualified_name, reason)
        return made


def gives_stream(cls: type) -> bool:
    """Whether a class is a reader: it has a method ``stream`` that takes nothing.

    Operators of records may have a method of that name as well, which then means nothing.
    """
    if any(callable(getattr(cls, method, None)) for method in _OF_RECORDS):
        return False
    method = inspect.getattr_static(cls, "stream", None)
    return inspect.isfunction(method) and len(inspect.signature(method).parameters) == 1


def is_stream(annotation: object) -> bool:
    """Whether an annotation, as written or resolved, is that of a stream."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].strip("\"'") in _STREAMS
    return isinstance(annotation, type) and _has_stages(annotation)


def _has_stages(cls: type) -> bool:
    return callable(getattr(cls, "part", None)) and callable(getattr(cls, "is_infinite", None))


def returns_stream(function: object) -> bool:
    """Whether a function says that it returns a stream: then it is a reader."""
    found = getattr(function, "__annotations__", {}).get("return")
    if isinstance(found, str) and not is_stream(found):
        return False
    return is_stream(found) or is_stream(typing.get_origin(found))
