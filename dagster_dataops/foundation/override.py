"""`override`, which `typing` has from Python 3.12 on.

For Python 3.11 it is our own: typing_extensions takes a twentieth of the time in which a process
starts and runs its first operator.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

__all__ = ["override"]

if sys.version_info >= (3, 12):
    from typing import override
elif TYPE_CHECKING:
    from typing_extensions import override
else:
    Method = TypeVar("Method", bound=Callable[..., object])

    def override(method: Method) -> Method:
        """Return the method, which overrides one of a base class, marked as `typing` does."""
        with suppress(AttributeError, TypeError):  # a property, for example
            method.__override__ = True
        return method
