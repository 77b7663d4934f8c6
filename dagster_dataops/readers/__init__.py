"""Readers: operators without input that return a stream of records.

One folder per file format. The modules here are shared by formats or need no folder. Readers that
installed packages add by entry points are attributes, too.
"""

from pkgutil import iter_modules

from dagster_dataops.foundation.entry_points import READERS, added_callable, added_names
from dagster_dataops.foundation.exports import lazy_exports

__all__, _shipped = lazy_exports(__name__)  # `__init__.pyi` lists the names
_OWN = frozenset([*__all__, *(module.name for module in iter_modules(__path__))])


def __getattr__(name: str) -> object:
    if name in _OWN or name.startswith("_"):
        return _shipped(name)
    added = added_callable(READERS, name, _OWN, "a function or class that returns a stream")
    return _shipped(name) if added is None else added


def __dir__() -> list[str]:
    return [*__all__, *added_names(READERS, _OWN)]
