"""Compile selectors to Python source that is as fast as hand-written code.

A selector whose paths do not overlap becomes two functions:

 get(item)                resolve each element by checked, nested indexing
 mapper(fn)(item)         resolve; then call fn for each path; then copy along the paths

Values are local variables, one per path: the element, or a list of elements below ``[*]``. A
missing element raises ``LookupError``; `resolver` then finds out which one is missing.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dagster_dataops.errors import MissingColumnError, SelectedElementError
from dagster_dataops.selectors.code_writer import SourceWriter
from dagster_dataops.selectors.grammar import Path, path_text
from dagster_dataops.selectors.resolver import copied, element_failed, rebuilt, resolve


def compiled(paths: Sequence[Path]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return (get, mapper) of `compilable` paths; ``mapper(fn)`` is a function of an item.

    Both raise `MissingColumnError` for a missing element, before ``fn`` is called.
    """
    names: dict[str, Any] = {
        "check": _check_keys,
        "copied": copied,
        "failed": partial(_failed, paths),
        "missing": partial(_missing, paths),
        "rebuilt": rebuilt,
    }
    source = "\n".join(SourceWriter(paths).lines())
    exec(compile(source, "<selector>", "exec"), names)  # noqa: S102 - keys appear as literals only
    return names["get"], names["mapper"]


def _check_keys(container: Any, keys: Sequence[str]) -> None:
    """Raise ``LookupError`` unless ``container`` is a dict with all keys; defaultdicts add none."""
    if not isinstance(container, dict) or any(key not in container for key in keys):
        raise LookupError


def _missing(paths: Sequence[Path], item: Any) -> MissingColumnError:
    try:
        resolve(item, paths)
    except MissingColumnError as error:
        return error
    return MissingColumnError(",".join(map(path_text, paths)), "it changed while it was read")


def _failed(
    paths: Sequence[Path], item: Any, number: int, position: int, error: Exception
) -> SelectedElementError:
    return element_failed(resolve(item, [paths[number]])[position], error)
