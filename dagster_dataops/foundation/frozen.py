"""`frozen`: dataclasses of which type checkers, and not each process, refuse changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(
    frozen_default=True, eq_default=False, kw_only_default=True, field_specifiers=(field,)
)
def frozen(*, eq: bool = False, kw_only: bool = True) -> Callable[[type[Kind]], type[Kind]]:
    """Return a decorator that makes a class of the package a dataclass that is never changed.

    It has no method that refuses changes, and no text of its own. ``@dataclass(frozen=True)``
    compiles these for each class, which takes a twelfth of the time in which a process starts and
    runs its first operator. Classes that users see are dataclasses of the usual kind.

    Args:
        eq: Compare the values of two objects, and hash them, in place of their identity.
        kw_only: Fields have to be named when an object is made.
    """
    return dataclass(repr=False, eq=eq, unsafe_hash=eq, kw_only=kw_only)
