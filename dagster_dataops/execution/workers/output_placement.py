"""Placing: finds where in the result the output of a stretch of the input belongs.

That is known once the size of everything before it is.
"""

from collections.abc import Iterator

from dagster_dataops.execution.workers.protocol import Place


class Placing:
    """Adds up the sizes of outputs in input order, whatever order they are known in.

    Args:
        start: Where in the input the first record starts.
    """

    def __init__(self, start: int) -> None:
        self._at = start  # up to where in the input the sizes are known without a gap
        self._offset = 0  # the size of all that
        self._ahead: dict[int, tuple[int, int]] = {}  # start: (end, size), beyond a gap

    def place_of(self, start: int) -> int | None:
        """Return where the output of what begins at ``start`` belongs, once that is known."""
        return self._offset if start == self._at else None

    def knows(self, start: int) -> bool:
        """Whether ``start`` has been passed: what begins there was placed before."""
        return start < self._at

    def add(self, start: int, end: int, size: int) -> Iterator[Place]:
        """Take note that [start, end) became ``size`` bytes; yield all places now known."""
        if not self.knows(start):
            self._ahead[start] = (end, size)
        while (found := self._ahead.pop(self._at, None)) is not None:
            yield Place(self._at, self._offset)
            self._at, self._offset = found[0], self._offset + found[1]
