"""Selector: names elements inside a record, to read them or to change them in a copy."""

from collections.abc import Callable
from typing import Any

from typing_extensions import override

from dagster_dataops.selectors.codegen import compiled
from dagster_dataops.selectors.grammar import EVERY, Path, parse
from dagster_dataops.selectors.path_tree import compilable
from dagster_dataops.selectors.resolver import mapped_in_order, resolve

_SPECIAL = frozenset(".[,")


class Selector:
    """Elements of a record by their paths, such as ``foo[1].y,bar`` or ``texts[*].body``.

    Paths that name one element twice, or an element and something inside it, are worked off in
    order, each on what the ones before have left.

    Args:
        text: The selector; `grammar` has the rules.

    Raises:
        SelectorSyntaxError: It is malformed.
    """

    __slots__ = ("get", "mapper", "paths", "text")

    get: Callable[[Any], Any]
    """Return the selected element; a list of them if the selector may name several.

    Raises `MissingColumnError` where one is not there.
    """

    mapper: Callable[[Callable[[Any], Any]], Callable[[Any], Any]]
    """Return `map` with its function bound, for many items."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.paths: tuple[Path, ...] = parse(text)
        if compilable(self.paths):
            self.get, self.mapper = compiled(self.paths)
        else:
            self.get, self.mapper = self._resolved, self._in_order

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of the record below which something is selected, each once."""
        return tuple(dict.fromkeys(path[0] for path in self.paths if isinstance(path[0], str)))

    @property
    def single(self) -> bool:
        """Whether it names exactly one element."""
        return len(self.paths) == 1 and EVERY not in self.paths[0]

    def values(self, item: Any) -> list[Any]:
        """Return the selected elements in order.

        Raises:
            MissingColumnError: One of them is not there.
        """
        found = self.get(item)
        return [found] if self.single else found

    def map(self, fn: Callable[[Any], Any], item: Any) -> Any:
        """Return a copy of ``item`` in which ``fn`` was applied to every selected element.

        Only what stands along the paths is copied; ``item`` itself stays as it is. Tuples stay
        tuples, and named ones keep their names.

        Raises:
            MissingColumnError: An element is not there; ``fn`` was not called.
            SelectedElementError: ``fn`` failed on an element.
        """
        return self.mapper(fn)(item)

    def _resolved(self, item: Any) -> list[Any] | Any:
        found = []
        for path in resolve(item, self.paths):
            value = item
            for step in path:
                value = value[step]
            found.append(value)
        return found[0] if self.single else found

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
    """Whether a key, as operators take it, says more than the name of one column."""
    return not _SPECIAL.isdisjoint(key)
