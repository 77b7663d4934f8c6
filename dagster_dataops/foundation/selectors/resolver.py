"""Resolve paths step by step: find elements, report missing ones, and change them one by one.

This is the reference implementation of selectors. Most selectors are compiled (`codegen`) and use
it for the rare cases: a missing element, and overlapping paths.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from dagster_dataops.errors import MissingColumnError, SelectedElementError
from dagster_dataops.foundation.selectors.grammar import EVERY, Path, PathStep, path_text

ConcretePath: TypeAlias = tuple[str | int, ...]

_MOST_KEYS_SHOWN: Final = 20


def concrete_paths(item: Any, path: Path) -> Iterator[ConcretePath]:
    """Yield the paths of the elements that ``path`` selects, with ``[*]`` replaced by indices.

    Raises:
        MissingColumnError: An element is missing.
    """
    at = path.index(EVERY) if EVERY in path else len(path)
    parent = _element(item, path, at)
    if at == len(path):
        yield path  # type: ignore[misc]  # contains no [*] any more
        return
    if not isinstance(parent, (list, tuple)):
        raise _missing(path, at, parent)
    for index in range(len(parent)):
        yield from concrete_paths(item, (*path[:at], index, *path[at + 1 :]))


def _element(item: Any, path: Path, depth: int) -> Any:
    """Return the element at the first ``depth`` steps of ``path``, which contain no ``[*]``."""
    for at, step in enumerate(path[:depth]):
        if not has(item, step):
            raise _missing(path, at, item)
        item = item[step]
    return item


def _missing(path: Path, at: int, value: Any) -> MissingColumnError:
    """Return the error for step number ``at`` of ``path``, which is missing in ``value``."""
    there = _description(value)
    if at + 1 < len(path):
        there = f"{path_text(path[: at + 1])!r} is missing; {there}"
    return MissingColumnError(path_text(path), there)


def has(container: Any, step: PathStep) -> bool:
    """Return whether ``container`` has an element at a key or index; texts have none."""
    if isinstance(step, str):
        return isinstance(container, dict) and step in container
    return isinstance(container, (list, tuple)) and step < len(container)  # type: ignore[operator]


def _description(value: Any) -> str:
    if isinstance(value, dict):
        keys = list(map(str, value))
        more = f" and {len(keys) - _MOST_KEYS_SHOWN} more" if len(keys) > _MOST_KEYS_SHOWN else ""
        return f"the keys there are {', '.join(keys[:_MOST_KEYS_SHOWN]) or 'none'}{more}"
    if isinstance(value, (list, tuple)):
        return f"there is a {type(value).__name__} of length {len(value)}"
    return f"there is a {type(value).__name__}, which has no elements"


def resolve(item: Any, paths: Sequence[Path]) -> list[ConcretePath]:
    """Return the paths of all selected elements, in order.

    Raises:
        MissingColumnError: An element is missing.
    """
    return [concrete for path in paths for concrete in concrete_paths(item, path)]


def mapped_in_order(item: Any, paths: Sequence[Path], fn: Callable[[Any], Any]) -> Any:
    """Return ``item`` with ``fn`` applied to the selected elements one after another.

    Each call sees the changes of the calls before.

    Raises:
        MissingColumnError: An element is missing, also because of an earlier change.
        SelectedElementError: ``fn`` failed.
    """
    ours: list[Any] = []
    for concrete in resolve(item, paths):
        item = _changed(item, concrete, 0, fn, ours)
    return item


def _changed(
    item: Any, path: ConcretePath, depth: int, fn: Callable[[Any], Any], ours: list[Any]
) -> Any:
    """Return ``item`` with the element at ``path[depth:]`` changed; ``ours`` lists the copies."""
    if depth == len(path):
        try:
            return fn(item)
        except Exception as error:
            raise element_failed(path, error) from error
    step = path[depth]
    if not has(item, step):
        raise _missing(path, depth, item)
    value = _changed(item[step], path, depth + 1, fn, ours)
    if isinstance(item, tuple):
        elements = list(item)
        elements[int(step)] = value
        return rebuilt(item, elements)
    if not any(item is candidate for candidate in ours):
        item = copied(item) if isinstance(item, dict) else rebuilt(item, list(item))
        ours.append(item)
    item[step] = value
    return item


def element_failed(path: Sequence[PathStep], error: Exception) -> SelectedElementError:
    """Return the error for a function that failed on an element."""
    return SelectedElementError(path_text(path), type(error).__name__, str(error))


def copied(container: dict[Any, Any]) -> dict[Any, Any]:
    """Return a shallow copy of a dict, of the same type."""
    return container.copy() if type(container) is dict else copy.copy(container)


def rebuilt(model: Any, elements: list[Any]) -> Any:
    """Return ``elements`` as a list or tuple of the type of ``model``."""
    if type(model) is tuple:
        return tuple(elements)
    if type(model) is list:
        return elements
    if hasattr(model, "_make"):  # a namedtuple
        return model._make(elements)
    if isinstance(model, list):
        other = copy.copy(model)
        other[:] = elements
        return other
    return type(model)(elements)
