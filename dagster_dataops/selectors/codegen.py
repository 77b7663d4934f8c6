"""Selectors as Python source: as fast as if each had been written out by hand.

A selector whose paths name no element twice becomes two functions:

    get(item)                resolve: every element by nested indexing, checked
    mapper(fn)(item)         resolve; then call fn, path by path; then copy along the paths

Values are local variables, one a path: the element itself, or a list of elements below ``[*]``.
What is missing raises ``LookupError`` in the first part, and `resolving` is asked what it is.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dagster_dataops.errors import MissingColumnError, SelectedElementError
from dagster_dataops.selectors.code_writer import Writer
from dagster_dataops.selectors.grammar import Path, written
from dagster_dataops.selectors.resolver import copied, element_failed, rebuilt, resolve


def compiled(paths: Sequence[Path]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return (get, mapper) of `compilable` paths; ``mapper(fn)`` is a function of an item.

    They raise `MissingColumnError` where an element is missing, before ``fn`` is called.
    """
    names: dict[str, Any] = {
        "check": _check_keys,
        "copied": copied,
        "failed": partial(_failed, paths),
        "missing": partial(_missing, paths),
        "rebuilt": rebuilt,
    }
    source = "\n".join(Writer(paths).lines())
    exec(compile(source, "<selector>", "exec"), names)  # noqa: S102 - keys stand in it as literals
    return names["get"], names["mapper"]


def _check_keys(container: Any, keys: Sequence[str]) -> None:
    """Refuse what is no dict, or would make the keys up that are missing."""
    if not isinstance(container, dict) or any(key not in container for key in keys):
        raise LookupError


def _missing(paths: Sequence[Path], item: Any) -> MissingColumnError:
    try:
        resolve(item, paths)
    except MissingColumnError as error:
        return error
    return MissingColumnError(",".join(map(written, paths)), "it changed while it was read")


def _failed(
    paths: Sequence[Path], item: Any, number: int, position: int, error: Exception
) -> SelectedElementError:
    return element_failed(resolve(item, [paths[number]])[position], error)
