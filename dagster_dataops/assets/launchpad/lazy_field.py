"""LazyField: a config field that is made when Dagster first looks into it.

Making the fields of an operator costs as much as all else of its asset. A process that runs one
step of a thousand looks into those of one operator; only a code server shows them all.
"""

from collections.abc import Callable
from typing import Any

import dagster as dg


class LazyField(dg.Field):
    """Becomes the field that ``make`` returns, at the first question about it.

    Args:
        make: Returns the field; called once.
    """

    def __init__(self, make: Callable[[], dg.Field]) -> None:
        self._make = make  # and nothing of what the base class keeps, which is asked for below

    def __getattr__(self, name: str) -> Any:
        """Return what a field knows, having been made."""
        own = vars(self)
        make = None if name.startswith("__") else own.pop("_make", None)
        if make is not None:
            own.update(vars(make()))
            return getattr(self, name)
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)
