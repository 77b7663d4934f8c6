"""`frozen`: dataclasses whose fields only type checkers protect from changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(
    frozen_default=True, eq_default=False, kw_only_default=True, field_specifiers=(field,)
)
def frozen(*, eq: bool = False, kw_only: bool = True) -> Callable[[type[Class]], type[Class]]:
    """Return a decorator that makes an internal class a dataclass that is never changed.

    The class has no methods that refuse changes, and no ``__repr__``. ``@dataclass(frozen=True)``
    compiles these for each class, which takes a twelfth of the time in which a process starts and
    runs its first operator. Use that decorator for classes that users see.

    Args:
        eq: Compare the values of two objects, and hash them, in place of their identity.
        kw_only: Fields have to be named when an object is made.
    """
    return dataclass(repr=False, eq=eq, unsafe_hash=eq, kw_only=kw_only)
