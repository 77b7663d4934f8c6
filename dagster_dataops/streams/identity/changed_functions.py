"""`ChangedFunctions`: functions that a stream has changed, by what they keep between calls."""

import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

_MAX_HELD: Final = 16  # objects that cannot be referred to weakly, such as those with slots alone

_Key: TypeAlias = tuple[int, ...]


class _Change(NamedTuple):
    parts: tuple[Callable[[], Any], ...]
    before: str
    after: str


class ChangedFunctions:
    """The digests of functions before and after a stream of this process called them.

    Another stream of the same functions has the digest from before, as it has in another process;
    unless somebody else has changed them since. The functions are not kept alive, except the last
    ones whose class has no weak references.
    """

    def __init__(self) -> None:
        self._changes: dict[_Key, _Change] = {}
        self._held: deque[_Key] = deque()

    def note(self, functions: Mapping[str, Any], before: str, after: str) -> None:
        """Note that a stream has changed functions."""
        parts = list(_parts(functions.values()))
        key = tuple(map(id, parts))
        references = tuple(self._reference(part, key) for part in parts)
        self._changes[key] = _Change(references, before, after)

    def _reference(self, part: Any, key: _Key) -> Callable[[], Any]:
        try:
            return weakref.ref(part, lambda _: self._forget(key))
        except TypeError:
            self._hold(key)
            return partial(_same, part)

    def _hold(self, key: _Key) -> None:
        if key not in self._held:
            self._held.append(key)
        if len(self._held) > _MAX_HELD:
            self._forget(self._held.popleft())

    def _forget(self, key: _Key) -> None:
        self._changes.pop(key, None)

    def before(self, functions: Mapping[str, Any], present: str) -> str:
        """Return the digest that functions had, given the present one."""
        parts = list(_parts(functions.values()))
        change = self._changes.get(tuple(map(id, parts)))
        if change is None or change.after != present:
            return present
        same = all(reference() is part for reference, part in zip(change.parts, parts, strict=True))
        return change.before if same else present


def _same(part: Any) -> Any:
    return part


def _parts(values: Iterable[Any]) -> Iterator[Any]:
    """Yield functions; a bound method is made anew each time, so its object and its function."""
    for value in values:
        if isinstance(value, tuple):
            yield from _parts(value)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        else:
            yield value
