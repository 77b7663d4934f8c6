"""`Finitude`: whether a stream ends by itself."""

from enum import IntEnum


class Finitude(IntEnum):
    """The length class of a stream, in rising order.

    A pseudo-infinite stream (a counter, a constant) never ends when it is read alone. Combined with
    other streams it yields as long as they do. An infinite stream (``repeat()``) makes every
    combination infinite.
    """

    FINITE = 0
    PSEUDO_INFINITE = 1
    INFINITE = 2


def mixed_finitude(kinds: list[Finitude]) -> Finitude:
    """Return the finitude of streams that are read in turn until each has ended once."""
    if Finitude.INFINITE in kinds:
        return Finitude.INFINITE
    pseudo = bool(kinds) and all(kind is Finitude.PSEUDO_INFINITE for kind in kinds)
    return Finitude.PSEUDO_INFINITE if pseudo else Finitude.FINITE
