"""Load the definitions in modules and files that a command names."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import dagster as dg

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.foundation.python_file import module_of_file


@dg.definitions
def _none() -> dg.Definitions:
    return dg.Definitions()


_Lazy: Final[Any] = type(_none)  # of functions with ``@dg.definitions``; it has no public name


def loaded_definitions(modules: Sequence[str], files: Sequence[str]) -> list[dg.Definitions]:
    """Return the definitions at the scope of modules and files.

    Raises:
        ConfigurationError: A file is missing or cannot be imported, or one has no definitions.
    """
    if str(Path.cwd()) not in sys.path:  # as Dagster's commands do
        sys.path.insert(0, str(Path.cwd()))
    loaded = [
        *map(importlib.import_module, modules),
        *(module_of_file(file, "--python-file") for file in files),
    ]
    return [definitions for module in loaded for definitions in _definitions_in(module)]


def _definitions_in(module: ModuleType) -> list[dg.Definitions]:
    """Return the definitions at the module's scope, also of a function with ``@dg.definitions``."""
    values: list[Any] = list(vars(module).values())
    values = [value() if isinstance(value, _Lazy) else value for value in values]
    definitions = {id(value): value for value in values if isinstance(value, dg.Definitions)}
    if not definitions:
        raise ConfigurationError("module", module.__name__, "a module with dg.Definitions")
    return list(definitions.values())
