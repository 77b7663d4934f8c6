"""Finitude: whether a stream ends by itself."""

from enum import IntEnum


class Finitude(IntEnum):
    """How long a stream is, in rising order.

    A pseudo-infinite stream (a counter, a constant) yields for ever alone; combined with others it
    yields as long as they do. An infinite one (``repeat()``) keeps a combination going for ever.
    """

    FINITE = 0
    PSEUDO_INFINITE = 1
    INFINITE = 2


def of_mixture(kinds: list[Finitude]) -> Finitude:
    """Return the finitude of streams read in turn until all have ended once."""
    if Finitude.INFINITE in kinds:
        return Finitude.INFINITE
    pseudo = bool(kinds) and all(kind is Finitude.PSEUDO_INFINITE for kind in kinds)
    return Finitude.PSEUDO_INFINITE if pseudo else Finitude.FINITE
