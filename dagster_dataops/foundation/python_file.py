"""Load a Python file that a command names."""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from dagster_dataops.errors import ConfigurationError


def module_of_file(file: str, setting: str) -> ModuleType:
    """Return the module of a Python file, which is run.

    It gets the name of the file, under which worker processes import it; a module of another file
    that has this name keeps it. The folder of the file is searched for modules.

    Args:
        file: The path of the file.
        setting: The setting or argument with the file, for errors.

    Raises:
        ConfigurationError: There is no such file, or it cannot be imported.
    """
    path = Path(file).expanduser().absolute()
    if path.suffix != ".py" or not path.is_file():
        raise ConfigurationError(setting, file, "a Python file that exists, NAME.py")
    module = _registered(path)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec = module.__spec__
        assert spec is not None  # noqa: S101 - it was made of one
        assert spec.loader is not None  # noqa: S101
        spec.loader.exec_module(module)
    except Exception as error:
        reason = f"a Python file that can be imported: {_described(error)}"
        raise ConfigurationError(setting, file, reason) from error
    return module


def _registered(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # noqa: S101 - a path that ends with .py has one
    module = importlib.util.module_from_spec(spec)
    known = sys.modules.get(path.stem)
    if known is None or getattr(known, "__file__", None) == str(path):
        sys.modules[path.stem] = module
    return module


def _described(error: Exception) -> str:
    """Return the type and the text of an exception, and the line that raised it."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):  # names its line
        return text
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{text} ({last.filename}, line {last.lineno})"
