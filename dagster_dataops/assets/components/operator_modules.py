"""Import the modules that a defs.yaml names; importing them registers their operators."""

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import dagster as dg

from dagster_dataops.assets.components.source_position import YamlPlace
from dagster_dataops.errors import ConfigurationError


def import_modules(
    context: dg.ComponentLoadContext, names: Sequence[str], place: YamlPlace
) -> list[ModuleType]:
    """Import modules and return them.

    Args:
        context: Context of the component.
        names: Modules, or Python files with paths relative to the component's folder.
        place: Position of the names in the defs.yaml.

    Raises:
        DefsYamlError: A module cannot be imported.
    """
    return [_imported(context, name, place.at(number)) for number, name in enumerate(names)]


def _imported(context: dg.ComponentLoadContext, name: str, place: YamlPlace) -> ModuleType:
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        return context.load_defs_relative_python_module(_file(context, name))
    except ConfigurationError as error:
        raise place.error(f"module {name!r}", error) from None
    except Exception as error:
        raise place.error(f"module {name!r}", error) from error


def _file(context: dg.ComponentLoadContext, name: str) -> Path:
    """Return the file; it must be in the package of definitions, where workers import it."""
    folder = context.path if context.path.is_dir() else context.path.parent
    file = Path(os.path.normpath(folder / name))
    if not file.is_file():
        raise ConfigurationError("modules", name, f"a Python file or a module; {file} is missing")
    if not file.is_relative_to(context.defs_module_path):
        inside = f"a file below {context.defs_module_path}, or the name of a module"
        raise ConfigurationError("modules", name, inside)
    return file
