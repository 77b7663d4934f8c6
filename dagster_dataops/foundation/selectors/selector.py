"""`Selector`: select elements of a record, to read them or to change them in a copy."""

from collections.abc import Callable
from typing import Any

from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.selectors import SPECIAL
from dagster_dataops.foundation.selectors.codegen import compiled
from dagster_dataops.foundation.selectors.grammar import EVERY, Path, parse
from dagster_dataops.foundation.selectors.resolver import mapped_in_order, resolve


class Selector:
    """Elements of a record by their paths, such as ``foo[1].y,bar`` or ``texts[*].body``.

    If paths overlap, they are processed in order, each on the result of the ones before.

    Args:
        text: The selector; see `grammar` for the rules.

    Raises:
        SelectorSyntaxError: The selector is malformed.
    """

    __slots__ = ("get", "mapper", "paths", "text")

    get: Callable[[Any], Any]
    """Return the selected element; a list of elements if the selector can select several.

    Raises `MissingColumnError` if an element is missing.
    """

    mapper: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
    """Return `map` with its function bound, to apply to many items."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.paths: tuple[Path, ...] = parse(text)
        self.get, self.mapper = compiled(self.paths) or (self._resolved, self._in_order)

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level keys of all paths, each once."""
        return tuple(dict.fromkeys(path[0] for path in self.paths if isinstance(path[0], str)))

    @property
    def single(self) -> bool:
        """Whether it always selects exactly one element."""
        return len(self.paths) == 1 and EVERY not in self.paths[0]

    def values(self, item: Any) -> list[Any]:
        """Return the selected elements in order.

        Raises:
            MissingColumnError: An element is missing.
        """
        values = self.get(item)
        return [values] if self.single else values

    def map(self, fn: Callable[[Any], Any], item: Any) -> Any:
        """Return a copy of ``item`` with ``fn`` applied to every selected element.

        Only the containers along the paths are copied; ``item`` is not changed. Tuples and named
        tuples keep their types.

        Raises:
            MissingColumnError: An element is missing; ``fn`` was not called.
            SelectedElementError: ``fn`` failed on an element.
        """
        return self.mapper(fn)(item)

    def _resolved(self, item: Any) -> list[Any] | Any:
        values = []
        for path in resolve(item, self.paths):
            value = item
            for step in path:
                value = value[step]
            values.append(value)
        return values[0] if self.single else values

    def _in_order(self, fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda item: mapped_in_order(item, self.paths, fn)

    @override
    def __reduce__(self) -> tuple[type["Selector"], tuple[str]]:
        return Selector, (self.text,)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.paths == other.paths

    @override
    def __hash__(self) -> int:
        return hash(self.paths)

    @override
    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def is_selector(key: str) -> bool:
    """Return whether an operator's key is a selector instead of a column name."""
    return not SPECIAL.isdisjoint(key)
