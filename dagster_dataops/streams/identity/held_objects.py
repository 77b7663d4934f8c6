"""What functions hold: objects that count as another one, and whether it is much."""

import sys
import types
from collections.abc import Iterable, Mapping
from functools import partial
from inspect import getattr_static
from typing import Any, Final, TypeAlias

from dagster_dataops.foundation.hashing.values import attributes_of

Functions: TypeAlias = Mapping[str, Any]
"""Functions, and tuples of them, by the name of the option."""

# What a function holds is large above these: its digest takes more than a second.
_LARGE_COUNT: Final = 300_000
_LARGE_BYTES: Final = 64 << 20
_EMPTY: Final = types.CellType()


class HeldObjects:
    """Objects that functions hold and that count as another one, which no call changes.

    So a service whose own methods are functions of a stream counts as it was given.
    """

    def __init__(self) -> None:
        # By id; the objects are stored too, so that their ids are not reused.
        self._originals: dict[int, tuple[object, object]] = {}

    def count_as(self, used: object, original: object) -> None:
        """Let an object count as another one."""
        self._originals[id(used)] = (used, original)

    def originals(self, functions: Functions) -> dict[str, Any]:
        """Return functions that hold the other objects."""
        return {name: self._original(function) for name, function in functions.items()}

    def _original(self, value: Any) -> Any:
        """Return a function with the originals of the objects that it holds."""
        if id(value) in self._originals:
            return self._originals[id(value)][1]
        return self._rebuilt(value) if self._originals else value

    def _rebuilt(self, value: Any) -> Any:
        match value:
            case types.MethodType():
                holder = self._original(value.__self__)
                bound = holder is value.__self__
                return value if bound else types.MethodType(value.__func__, holder)
            case tuple():
                originals = tuple(map(self._original, value))
                same = all(
                    original is other for original, other in zip(originals, value, strict=True)
                )
                return value if same else originals
            case partial():
                return self._original_partial(value)
            case types.FunctionType() if value.__closure__:
                return self._original_closure(value)
        return value

    def _original_partial(self, value: "partial[Any]") -> "partial[Any]":
        held = (value.func, *value.args, *value.keywords.values())
        function, *others = self._original(held)
        if all(part is other for part, other in zip(held, (function, *others), strict=True)):
            return value
        count = len(value.args)
        named = dict(zip(value.keywords, others[count:], strict=True))
        return partial(function, *others[:count], **named)

    def _original_closure(self, function: types.FunctionType) -> types.FunctionType:
        try:
            held = [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # an empty cell: assigned later
            return function
        originals = [cell if cell is function else self._original(cell) for cell in held]
        if all(part is other for part, other in zip(held, originals, strict=True)):
            return function
        copy = types.FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            tuple(map(types.CellType, originals)),
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        vars(copy).update(vars(function))
        return copy


def is_large(functions: Functions) -> bool:
    """Return whether functions hold many objects, or many bytes."""
    rest: list[Any] = [functions]
    seen: set[int] = set()
    size = 0
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        size += _bytes_of(value)
        parts = list(_parts_of(value))
        if len(seen) + len(rest) + len(parts) > _LARGE_COUNT or size > _LARGE_BYTES:
            return True
        rest += parts
    return False


def _bytes_of(value: Any) -> int:
    """Return the bytes that an object holds itself, also outside of Python's memory."""
    try:
        outside = value.nbytes if getattr_static(type(value), "nbytes", None) is not None else 0
        return max(sys.getsizeof(value), int(outside))
    except Exception:  # noqa: BLE001 - user objects may raise anything
        return 0


def _parts_of(value: Any) -> Iterable[Any]:
    """Return the objects that a digest of an object goes on to, as far as they can be large."""
    match value:
        case dict() | types.MappingProxyType():
            parts: Iterable[Any] = [*value, *value.values()]
        case list() | tuple() | set() | frozenset():
            parts = value
        case types.FunctionType():
            cells = value.__closure__ or ()
            held = [cell.cell_contents for cell in cells if cell != _EMPTY]
            parts = [*held, *map(value.__globals__.get, value.__code__.co_names)]
        case types.MethodType():
            parts = [value.__self__, value.__func__]
        case partial():
            parts = [value.func, *value.args, *value.keywords.values()]
        case type() | types.ModuleType():
            parts = ()
        case _:
            parts = attributes_of(value).values()
    return parts
