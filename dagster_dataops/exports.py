"""lazy_exports: public names of a package, each imported on first use.

Worker processes import the package to load operators. They never import Dagster, which takes over
a second, and little of the rest.
"""

import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

_IMPORT: Final = re.compile(r"^from (\S+) import \(?\s*(\w+) as (\w+)", re.MULTILINE)
_ALIAS: Final = re.compile(r"^(\w+) = (\w+)$", re.MULTILINE)


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], object]]:
    """Return ``__all__`` and ``__getattr__`` of a package.

    Args:
        package: Name of a package whose ``__init__.pyi``, which type checkers read, imports each
            public name by ``from module import name as name``. A name that differs from the
            imported one is assigned: ``public = name``.
    """
    module: Any = sys.modules[package]
    stub = os.path.join(module.__path__[0], "__init__.pyi")  # noqa: PTH118 - inside a zip, too
    text = module.__spec__.loader.get_data(stub).decode()
    homes = {public: (home, name) for home, name, public in _IMPORT.findall(text)}
    homes |= {public: homes.pop(name) for public, name in _ALIAS.findall(text)}

    def load(name: str) -> object:
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        home, attribute = homes[name]
        found = None if home == package else getattr(import_module(home), attribute, None)
        return import_module(f"{home}.{attribute}") if found is None else found

    return sorted(homes), load
