"""Declared columns: the columns that an operator reads and writes, and their types.

 @data_register("data.mini", reads={"values": list[float]}, columns={"x": float, "y": float})
 def mini_decoder(record: dict) -> dict: ...

``reads`` are required columns, or ``"observed"``: they are found by watching the operator, see
`terms_of`. ``writes`` are added to the existing columns; ``columns`` are all
columns of the result, for example of a reader. Undeclared columns are not checked.
"""

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from dagster_dataops.errors import OperatorDefinitionError
from dagster_dataops.operators.options.annotations import UNIONS

ColumnTypes: TypeAlias = Mapping[str, Any]
"""Types by column, such as ``float``, ``list[float]`` or ``str | None``; ``Any`` allows all."""
Declaration: TypeAlias = ColumnTypes | Iterable[str] | Callable[..., ColumnTypes | Iterable[str]]
"""Also names without types, or a function of the options that returns either form."""


class ColumnDeclarations(NamedTuple):
    """The declared columns of an operator; ``None`` for a missing declaration.

    Attributes:
        reads: The columns that the operator needs.
        writes: The columns that it adds to the existing ones.
        columns: All columns of its result.
    """

    reads: Declaration | None = None
    writes: Declaration | None = None
    columns: Declaration | None = None

    def checked(self, operator: str) -> "ColumnDeclarations":
        """Check the declarations and return them.

        Raises:
            OperatorDefinitionError: A declaration is malformed, or two contradict each other.
        """
        if self.writes is not None and self.columns is not None:
            reason = "it declares both writes (added columns) and columns (all columns); keep one"
            raise OperatorDefinitionError(operator, reason)
        for kind, declaration in self._asdict().items():
            if declaration is not None and not callable(declaration):
                column_types(operator, kind, declaration, {})
        return self


OBSERVED: Final = "observed"
"""The declaration of ``reads`` by which the columns are found by watching the operator."""
NOTHING: Final = ColumnDeclarations()
_PACKAGE: Final = f"{__name__.partition('.')[0]}."


class InheritedReads(tuple[str, ...]):
    """The columns that an operator of the library reads, of an operator that inherits from it."""

    __slots__ = ()


def is_inherited(reads: Declaration | None) -> bool:
    """Return whether a declaration of ``reads`` is that of an operator of this package."""
    return str(getattr(reads, "__module__", "")).startswith(_PACKAGE)


def sent_declarations(declared: ColumnDeclarations, names: tuple[str, ...]) -> ColumnDeclarations:
    """Return what a worker has to know of declarations, without functions and types.

    Args:
        declared: The declarations.
        names: The names of the columns that the operator reads.
    """
    reads: Declaration | None = names
    if declared.reads is None or declared.reads == OBSERVED:
        reads = declared.reads
    elif is_inherited(declared.reads):
        reads = InheritedReads(names)
    return ColumnDeclarations(reads=reads, writes=None if declared.writes is None else ())


DECLARATIONS: Final = frozenset(ColumnDeclarations._fields)


def column_types(
    operator: str, kind: str, declared: Declaration, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the types of declared columns.

    Args:
        operator: The operator's name, for errors.
        kind: ``reads``, ``writes`` or ``columns``, for errors.
        declared: The declaration.
        options: The operator's options, passed to a declaration that is a function.

    Raises:
        OperatorDefinitionError: The declaration is neither a mapping of names to types nor a list
            of names.
    """
    if kind == "reads" and declared == OBSERVED:
        return {}
    columns = declared(**options) if callable(declared) else declared
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        reason = f"{kind} is {columns!r}; use {{'column': type}}, or a list of names"
        raise OperatorDefinitionError(operator, reason)
    by_name = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, Any)
    for name, kind_of in by_name.items():
        if not isinstance(name, str) or not _is_type(kind_of):
            reason = f"{kind} declares {name!r} as {kind_of!r}; use a name and a type"
            raise OperatorDefinitionError(operator, f"{reason}, such as float or list[str]")
    return by_name


def _is_type(annotation: Any) -> bool:
    if annotation is Any or annotation is None or isinstance(annotation, type):
        return True
    return typing.get_origin(annotation) is not None


def type_text(declared: Any) -> str:
    """Return a type as Python source text."""
    if isinstance(declared, type) and not typing.get_args(declared):
        return "None" if declared is types.NoneType else declared.__name__
    return str(declared).replace("typing.", "")


def columns_text(columns: ColumnTypes) -> str:
    """Return columns and types as text, each after a space; the same for the same columns."""
    return "".join(f" {name}:{type_text(kind)}" for name, kind in columns.items())


def accepts_type(wanted: Any, there: Any) -> bool:
    """Return whether a column of type ``there`` can be read as ``wanted`` (or int as float)."""
    wanted, there = (types.NoneType if kind is None else kind for kind in (wanted, there))
    if Any in {wanted, there} or wanted == there:
        return True
    if typing.get_origin(there) in UNIONS:
        return all(accepts_type(wanted, arg) for arg in typing.get_args(there))
    if typing.get_origin(wanted) in UNIONS:
        return any(accepts_type(arg, there) for arg in typing.get_args(wanted))
    outer = typing.get_origin(wanted) or wanted
    return _is_below(typing.get_origin(there) or there, outer) and _arguments_fit(wanted, there)


def _is_below(there: Any, wanted: Any) -> bool:
    if (wanted, there) == (float, int):
        return True
    both = isinstance(there, type) and isinstance(wanted, type)
    return both and issubclass(there, wanted) and (there is not bool or wanted is not int)


def _arguments_fit(wanted: Any, there: Any) -> bool:
    """Return whether type arguments match. Missing arguments, as in a plain ``list``, match all."""
    inner, asked = typing.get_args(there), typing.get_args(wanted)
    return (
        not inner
        or not asked
        or (len(inner) == len(asked) and all(map(accepts_type, asked, inner)))
    )
