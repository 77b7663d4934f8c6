"""lazy_exports: public names of a package, each imported on first use; `NamedModule`.

Worker processes import the package to load operators. They never import Dagster, which takes over
a second, and little of the rest.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from dagster_dataops.foundation.concurrency.garbage import objects_that_stay
from dagster_dataops.foundation.override import override


class NamedModule(ModuleType):
    """A module with a class of its own. It is pickled by name, as modules are by cloudpickle."""

    @override
    def __reduce__(self) -> Any:
        return import_module, (self.__name__,)


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], object]]:
    """Return ``__all__`` and ``__getattr__`` of a package or a module.

    Args:
        package: Its name. Its stub, which type checkers read, imports each public name by ``from
            module import name as name``. A name that differs from the imported one is assigned:
            ``public = name``. An ``__all__`` in the stub lists the names to show; by default all.
    """
    text = _stub(package)
    homes = _homes(text)

    def load(name: str) -> object:
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        home, attribute = homes[name]
        value = None if home == package else getattr(imported(home), attribute, None)
        return imported(f"{home}.{attribute}") if value is None else value

    shown = text.partition("\n__all__ = [")[2].partition("]")[0].replace(",", "").split()
    return sorted([name.strip('"') for name in shown] or homes), load


def imported(module: str) -> ModuleType:
    """Import a module, and keep its objects out of most garbage collections."""
    if module in sys.modules:
        return import_module(module)  # it waits for another thread that imports it
    with objects_that_stay():
        return import_module(module)


def public_names(package: str) -> list[str]:
    """Return all names that can be imported from a package, also those that it does not show."""
    return sorted(_homes(_stub(package)))


def _stub(package: str) -> str:
    """Return the text of ``name.pyi`` beside ``name.py``, also inside a zip."""
    spec: Any = sys.modules[package].__spec__
    text: str = spec.loader.get_data(f"{spec.origin}i").decode()
    return text


def _homes(text: str) -> dict[str, tuple[str, str]]:
    """Return the module and the name there, by the public name."""
    homes: dict[str, tuple[str, str]] = {}
    for statement in f"\n{text}".split("\nfrom ")[1:]:
        home, _, name, by, public = statement.replace("(", "").split(maxsplit=5)[:5]
        if by == "as":
            homes[public.rstrip(",")] = home, name
    for line in text.splitlines():
        public, _, name = line.partition(" = ")
        if name in homes:
            homes[public] = homes.pop(name)
    return homes
