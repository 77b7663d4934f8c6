"""``pack``: make records of groups of items, which are selected among windows of items."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final, TypeAlias

from dagster_dataops.foundation.override import override
from dagster_dataops.records import RESTORE_KEY, SOURCES
from dagster_dataops.streams.core.stage import State, UnaryStage

SelectGroups: TypeAlias = Callable[[list[Any]], Iterable[Sequence[Any]]]
PackGroup: TypeAlias = Callable[[list[Any]], Any]

PACK: Final = "pack"  # the first element of the restore key of a pack


@dataclass(eq=False)
class Pack(UnaryStage):
    """Select groups of items in each window of ``size`` items, and make packs of them.

    The position before the current window is saved, and the number of its packs that were yielded.
    No item is held in the state.
    """

    name: ClassVar[str] = "pack"
    saved: ClassVar[tuple[str, ...]] = ("failed_before", "given")
    size: int
    select: SelectGroups
    pack: PackGroup

    @override
    def reset(self) -> None:
        self.given = 0
        self._before: State = None
        self._in_window = False

    @property
    def failed_before(self) -> int:
        """The number of failures before the current window."""
        return self._failed_before if self._in_window else self.failed

    @failed_before.setter
    def failed_before(self, count: int) -> None:
        self.failed = count

    @override
    def states_before(self) -> list[State] | None:
        return [self._before] if self._in_window else None

    @override
    def items(self) -> Iterator[Any]:
        upstream = self.source.items()
        while True:
            before, passed = self.source.state(), self.given
            window = list(islice(upstream, self.size))
            if not window:
                return
            self._before, self._failed_before, self._in_window = before, self.failed, True
            for number, pack in enumerate(self._packs(window), 1):
                if number > passed:
                    self.given = number
                    yield pack
            self.given, self._in_window = 0, False

    def _packs(self, window: list[Any]) -> Iterator[Any]:
        try:
            groups = groups_of(self.select(list(window)))
        except Exception as error:  # noqa: BLE001 - the user's function may raise anything
            self.counter.end(self.counter.handle(window, error, self.counter.before))
            return
        for group in filter(None, groups):
            try:
                packs = packs_of(self.pack, group)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self.counter.end(self.counter.handle(group, error, self.counter.before))
            else:
                self.counter.end(packs)
                yield from packs


def groups_of(selected: object) -> list[list[Any]]:
    """Return the result of ``select`` as lists."""
    groups: list[Any] = list(selected) if isinstance(selected, Iterable) else [selected]
    wrong = [
        group for group in groups if isinstance(group, dict) or not isinstance(group, Iterable)
    ]
    if wrong:
        kind, within = type(wrong[0]).__name__, isinstance(selected, Iterable)
        problem = f"a {type(selected).__name__}{f' with a {kind}' if within else ''}"
        raise TypeError(
            f"select returned {problem}; it must return groups: a list of lists of items"
        )
    return [list(group) for group in groups]


def packs_of(pack: PackGroup, group: list[Any]) -> list[Any]:
    """Return the packs of a group, with restore keys and sources of its items."""
    packs = pack(group)
    if packs is None:
        return []
    if isinstance(packs, dict):
        return [_with_keys(packs, group, [])]
    if isinstance(packs, (str, bytes)) or not isinstance(packs, Iterable):
        return [packs]
    return [_with_keys(packed, group, [number]) for number, packed in enumerate(packs)]


def _with_keys(pack: Any, group: list[Any], number: list[int]) -> Any:
    """Return a pack with the keys of a group; ``number`` holds its place among several packs."""
    items = [item for item in group if isinstance(item, dict)]
    if not isinstance(pack, dict) or not items:
        return pack
    if any(pack is item for item in items):
        pack = copy.copy(pack)
    if all(RESTORE_KEY in item for item in items):
        pack[RESTORE_KEY] = [PACK, *(item[RESTORE_KEY] for item in items), *number]
    sources = list(pack.get(SOURCES) or ())
    for item in items:
        sources += [source for source in item.get(SOURCES) or () if source not in sources]
    if sources:
        pack[SOURCES] = sources
    return pack
