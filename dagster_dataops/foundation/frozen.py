"""`frozen`, `changeable`: dataclasses of which Python compiles no methods.

The standard decorator compiles the methods of each class, which took a sixth of the time in which a
process starts and runs its first operator. The methods here are the same functions for all classes.
Use `dataclass` for classes that users see, and for objects that are made for each record.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(
    frozen_default=True, eq_default=False, kw_only_default=True, field_specifiers=(field,)
)
def frozen(*, eq: bool = False, kw_only: bool = True) -> Callable[[type[Class]], type[Class]]:
    """Return a decorator that makes an internal class a dataclass that is never changed.

    Type checkers refuse changes; the class does not. It has no ``__repr__``.

    Args:
        eq: Compare the values of two objects, and hash them, in place of their identity.
        kw_only: Fields have to be named when an object is made.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        with_fields = _with_fields(cls, kw_only=kw_only)
        return _compared(with_fields) if eq else with_fields

    return decorate


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def changeable(cls: type[Class]) -> type[Class]:
    """Make an internal class a dataclass as `frozen` does, but with fields that may be changed."""
    return _with_fields(cls, kw_only=True)


def _with_fields(cls: type[Class], *, kw_only: bool) -> type[Class]:
    """Make a class a dataclass; its ``__init__`` is defined here and not compiled."""
    made: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
    known = [entry for entry in fields(made) if entry.init]
    places = [entry.name for entry in known if not entry.kw_only]
    defaults: dict[str, object] = {entry.name: entry.default for entry in known}
    without_default = [entry for entry in known if entry.default is MISSING]
    has_post_init = hasattr(made, "__post_init__")

    def __init__(self: Any, *values: object, **named: object) -> None:  # noqa: N807
        if values:
            named |= _by_name(cls.__name__, places, values, named)
        state = defaults | named
        if len(state) > len(defaults):
            msg = f"{cls.__name__} has no {', '.join(map(repr, named.keys() - defaults.keys()))}"
            raise TypeError(msg)
        for entry in without_default:
            if entry.name not in named:
                state[entry.name] = _made_default(entry, cls.__name__)
        self.__dict__ = state
        if has_post_init:
            self.__post_init__()

    made.__init__ = __init__
    return cls


def _made_default(entry: "Field[Any]", cls: str) -> object:
    """Return the value that the factory of a field makes; a field without one must be given."""
    if entry.default_factory is MISSING:
        msg = f"{cls} needs {entry.name!r}"
        raise TypeError(msg)
    return entry.default_factory()


def _by_name(
    cls: str, places: list[str], values: tuple[object, ...], named: dict[str, object]
) -> dict[str, object]:
    """Return the values that are given by position, by the names of their fields."""
    positional = dict(zip(places, values, strict=False))
    if len(values) > len(places) or not named.keys().isdisjoint(positional):
        msg = f"{cls} takes {', '.join(places) or 'no fields'} by position, each once"
        raise TypeError(msg)
    return positional


def _compared(cls: type[Class]) -> type[Class]:
    """Compare and hash the objects of a class by the values of its fields."""
    known = [entry for entry in fields(cls) if entry.compare]  # type: ignore[arg-type]
    compared = attrgetter(*(entry.name for entry in known))
    hashed = attrgetter(*(entry.name for entry in known if entry.hash is not False))

    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        same = other.__class__ is self.__class__
        return compared(self) == compared(other) if same else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(hashed(self))

    cls.__eq__ = __eq__  # type: ignore[method-assign]
    cls.__hash__ = __hash__  # type: ignore[method-assign]
    return cls
