"""Number the elements that a run of elementwise stages processes, for seeds derived by number.

The numbers are those of the items of the stage below the run: the nearest one that is not
elementwise. Filters and expansions inside the run do not shift them, so they are the same whether
one process or several run the stages.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import Cursor, ReadContext, UnaryStage

NOTHING: Final = (-1, 0)  # the value of `begun` between two elements
_END: Final = object()


class ElementCursor(Cursor):
    """Yield the items of another cursor and count them. The count is saved.

    Attributes:
        number: The number of items read, by all ranks.
        step: The number of ranks.
        rank: The rank.
        observers: Called before each item is read. No stage of the run is within an element then.
    """

    saved: ClassVar[tuple[str, ...]] = ("number",)

    def __init__(self, source: Cursor) -> None:
        self.opened = [source]
        self.number = 0
        self.step, self.rank = source.numbering
        self.observers: list[Callable[[], None]] = []

    @override
    def items(self) -> Iterator[object]:
        items, observers = self.opened[0].items(), self.observers
        while True:
            for observe in observers:
                observe()
            item = next(items, _END)
            if item is _END:
                self.number += self.opened[0].numbers_after
                return
            self.number += self.step
            yield item

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self.number = 0 if reset_rng else self.number
        self.opened[0].restart(reset_rng=reset_rng)


def element_cursor(cursor: Cursor) -> ElementCursor:
    """Return the cursor that numbers the elements of a run; insert it below the run if missing.

    Args:
        cursor: A cursor of an elementwise stage.
    """
    while isinstance(below := cursor.opened[0], UnaryStage) and below.elementwise:
        cursor = below
    if not isinstance(below, ElementCursor):
        below = ElementCursor(below)
        cursor.opened = [below]
    return below


@dataclass(eq=False)
class NumberedStage(UnaryStage):
    """An elementwise stage that derives seeds from the numbers of elements.

    The number of the last element is saved, and how many further items it became before this stage,
    while more items of it may follow.
    """

    saved: ClassVar[tuple[str, ...]] = ("begun",)
    elementwise: ClassVar[bool] = True

    @override
    def begin(self, context: ReadContext) -> None:
        self._elements = element_cursor(self)

    @override
    def reset(self) -> None:
        self._element, self._repeated = NOTHING

    @property
    def is_within(self) -> bool:
        """Whether the stage may yield more items of its last item."""
        return False

    @property
    def begun(self) -> list[int]:
        """The last element and its further items, if more may follow; else [-1, 0]."""
        cursor: Cursor = self.source
        while isinstance(cursor, UnaryStage) and cursor.elementwise:
            if isinstance(cursor, NumberedStage) and cursor.is_within:
                return [self._element, self._repeated]
            cursor = cursor.source
        return list(NOTHING)

    @begun.setter
    def begun(self, begun: list[int]) -> None:
        self._element, self._repeated = begun

    def next_number(self) -> tuple[int, ...]:
        """Return the number of the item that was just read. Call it once for each item.

        An item after the first one of the same element has a second number.
        """
        number = self._elements.number - self._elements.step
        plain = number + self._elements.rank
        if number == self._element:
            self._repeated += 1
            return (plain, self._repeated)
        self._element, self._repeated = number, 0
        return (plain,)
