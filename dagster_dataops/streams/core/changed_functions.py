"""`ChangedFunctions`: functions that a stream has changed, by what they keep between calls."""

import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class _Change(NamedTuple):
    parts: tuple[weakref.ref[Any], ...]
    before: str
    after: str


class ChangedFunctions:
    """The digests of functions before and after a stream of this process called them.

    Another stream of the same functions has the digest from before, as it has in another process;
    unless somebody else has changed them since. The functions are not kept alive.
    """

    def __init__(self) -> None:
        self._changes: dict[tuple[int, ...], _Change] = {}

    def note(self, functions: Mapping[str, Any], before: str, after: str) -> None:
        """Note that a stream has changed functions."""
        parts = list(_parts(functions.values()))
        key = tuple(map(id, parts))
        try:
            references = tuple(weakref.ref(one, lambda _: self._forget(key)) for one in parts)
        except TypeError:  # such an object has no weak references
            return
        self._changes[key] = _Change(references, before, after)

    def _forget(self, key: tuple[int, ...]) -> None:
        self._changes.pop(key, None)

    def before(self, functions: Mapping[str, Any], present: str) -> str:
        """Return the digest that functions had, given the present one."""
        parts = list(_parts(functions.values()))
        found = self._changes.get(tuple(map(id, parts)))
        if found is None or found.after != present:
            return present
        same = all(one() is part for one, part in zip(found.parts, parts, strict=True))
        return found.before if same else present


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    """Yield functions; a bound method is made anew each time, so its object and its function."""
    for value in values:
        if isinstance(value, tuple):
            yield from _parts(value)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        else:
            yield value
