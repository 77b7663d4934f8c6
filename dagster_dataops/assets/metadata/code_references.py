"""Code references: the link from the asset page to the source of an operator."""

import functools
import inspect
import warnings
from pathlib import Path
from typing import Any

import dagster as dg

from dagster_dataops.assets.metadata.metadata_keys import CODE_REFERENCES


def code_references(*targets: Any) -> dict[str, Any]:
    """Return the source positions of functions or classes as definition metadata.

    Wrapped functions are unwrapped. The result is empty for code without a file: from a prompt,
    from ``exec``, or built into the interpreter.
    """
    places = tuple(place for place in map(source_place, targets) if place is not None)
    return {CODE_REFERENCES: _references(places)} if places else {}


@functools.lru_cache(maxsize=1024)
def _references(places: tuple[tuple[str, int], ...]) -> dg.CodeReferencesMetadataValue:
    with warnings.catch_warnings():
        # Public since Dagster 1.8 and still marked as beta.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.CodeReferencesMetadataValue(
            code_references=[
                dg.LocalFileCodeReference(file_path=path, line_number=line) for path, line in places
            ]
        )


@functools.lru_cache(maxsize=1024)
def source_place(target: Any) -> tuple[str, int] | None:
    """Return the file of a function or class and the line it starts at, counted from 1."""
    written = inspect.unwrap(target) if callable(target) else target
    while isinstance(written, functools.partial):
        written = inspect.unwrap(written.func)
    code = getattr(written, "__code__", None)
    if code is not None:
        path, line = code.co_filename, code.co_firstlineno
    elif isinstance(written, type):
        path = _file_of(written)
        line = _line_of(written) if path else 1
    else:
        return None
    absolute = path and _absolute(path)
    return (absolute, line) if absolute else None


@functools.lru_cache(maxsize=256)
def _absolute(path: str) -> str | None:
    """Return the absolute path of a file; ``None`` if there is none."""
    return str(Path(path).absolute()) if Path(path).is_file() else None


def _file_of(cls: type) -> str | None:
    try:
        return inspect.getsourcefile(cls)
    except (TypeError, OSError):  # built in, or without a module
        return None


def _line_of(cls: type) -> int:
    """Return the first line of a class, decorators included; 1 if its file does not define it."""
    try:
        return inspect.findsource(cls)[1] + 1
    except (OSError, SyntaxError, ValueError):
        return 1
