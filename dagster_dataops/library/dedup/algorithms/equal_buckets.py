"""Find the buckets that several records share, and number them.

Buckets with one record affect nothing and are left out.
"""

from typing import Any, Final, NamedTuple

SORT_BYTES: Final = 48  # per bucket while they are sorted


class Found(NamedTuple):
    """Buckets that several records share.

    Attributes:
        positions: Of records, an array.
        numbers: The number of the bucket that each is in, from 0 on.
        buckets: How many buckets there are; the next numbers begin after them.
    """

    positions: Any
    numbers: Any
    buckets: int


def equal_buckets(buckets: Any) -> tuple[Any, Any, int]:
    """Return the places of buckets that are there several times, the number of each, and how many.

    Args:
        buckets: An array of buckets.
    """
    import numpy

    order = numpy.argsort(buckets, kind="stable")
    ordered = buckets[order]
    again = numpy.zeros(len(buckets) + 1, bool)  # equal to the one before
    again[1:-1] = ordered[1:] == ordered[:-1]
    shared = again[:-1] | again[1:]
    first = ~again[:-1] & shared
    return order[shared], (numpy.cumsum(first) - 1)[shared], int(first.sum())
