"""LazyField: a config field that is created on first access.

Creating the config fields of an operator takes as long as the rest of its asset. A process that
runs one of a thousand steps needs the fields of one operator; only a code server needs all.
"""

from collections.abc import Callable
from typing import Any

import dagster as dg


class LazyField(dg.Field):
    """Becomes the field that ``make`` returns, on first access.

    Args:
        make: Returns the field; called once.
    """

    def __init__(self, make: Callable[[], dg.Field]) -> None:
        self._make = make  # the attributes of the base class are made in `__getattr__`

    def __getattr__(self, name: str) -> Any:
        """Make the field and return its attribute."""
        own = vars(self)
        make = None if name.startswith("__") else own.pop("_make", None)
        if make is not None:
            own.update(vars(make()))
            return getattr(self, name)
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)
