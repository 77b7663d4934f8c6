"""`Readable`: the base of all readers, operators without input that return a stream of records.

A reader is a pipeline's source in plain Python (``ppl(reader)``) and in Dagster
(``build_definitions(ppl, source=reader)``).
"""

import inspect
import typing
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from dagster_dataops.errors import InputError, OperatorDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.operators.kinds.kind_table import methods_first
from dagster_dataops.operators.options.declared_columns import Declaration, column_types

if TYPE_CHECKING:
    from dagster_dataops.operators.definition.spec import Invocation

_STREAMS: Final = frozenset({"DataPipeline", "DataPipelineBuilder"})


class Readable:
    """A reader.

    Attributes:
        columns: The types of all columns of its records; ``None`` if not declared.
    """

    columns: Declaration | None = None

    @cached_property
    def name(self) -> str:
        """The name, and the last part of its asset key. Assign another one to avoid duplicates."""
        return type(self).__name__

    @property
    def description(self) -> str:
        """The docstring."""
        return inspect.cleandoc(type(self).__doc__ or "")

    def stream(self) -> Any:
        """Return the stream of records."""
        reason = "a reader must define stream(), or read_from() of dagster_dataops.Reader"
        raise OperatorDefinitionError(type(self).__name__, reason)

    def __iter__(self) -> Iterator[Any]:
        """Yield the records from the start."""
        return iter(self.stream())

    def __call__(self, data: object = None) -> Any:
        """Return all records as a list.

        Raises:
            InputError: ``data`` was given.
        """
        if data is not None:
            reason = (
                f"the reader {self.name} accepts none; it reads the source that its options name"
            )
            raise InputError(f"of type {type(data).__name__}", reason)
        return list(self)

    def column_types(self) -> dict[str, Any] | None:
        """Return the types of the columns; ``None`` if not declared."""
        if self.columns is None:
            return None
        invocation: Invocation | None = getattr(self, "__dataops__", None)
        options = {} if invocation is None else invocation.options
        return column_types(self.name, "columns", self.columns, options)


class FunctionReader(Readable):
    """A reader registered as a function of its options, which returns the stream."""

    __dataops__: "Invocation"

    @override
    def stream(self) -> Any:
        """Return the stream that the function returns.

        Raises:
            OperatorDefinitionError: The function did not return a stream.
        """
        spec = self.__dataops__.spec
        stream = spec.target(**self.__dataops__.options)
        if not is_stream(type(stream)):
            reason = (
                f"it returned a {type(stream).__name__}; a reader must return a stream, such as "
                "read_jsonl(path) or read_sequence(records)"
            )
            raise OperatorDefinitionError(spec.qualified_name, reason)
        return stream


def gives_stream(cls: type) -> bool:
    """Return whether a class is a reader: it has a method ``stream`` without parameters.

    In record operators a method of that name has no special meaning.
    """
    if any(callable(getattr(cls, method, None)) for method in methods_first()):
        return False
    method = inspect.getattr_static(cls, "stream", None)
    return inspect.isfunction(method) and len(inspect.signature(method).parameters) == 1


def is_stream(annotation: object) -> bool:
    """Return whether an annotation, as text or as a type, is a stream type."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].strip("\"'") in _STREAMS
    methods = (getattr(annotation, name, None) for name in ("part", "is_infinite"))
    return isinstance(annotation, type) and all(map(callable, methods))


def returns_stream(function: Any) -> bool:
    """Return whether a function is annotated to return a stream, which makes it a reader.

    An annotation that cannot be resolved, for example a name imported under ``TYPE_CHECKING``, is
    compared by name.
    """
    annotation = getattr(function, "__annotations__", {}).get("return")
    if isinstance(annotation, str):
        try:
            annotation = typing.get_type_hints(function).get("return")
        except (NameError, TypeError, AttributeError, SyntaxError):
            return is_stream(annotation)
    return is_stream(annotation) or is_stream(typing.get_origin(annotation))
