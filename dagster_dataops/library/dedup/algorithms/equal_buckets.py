"""Find the buckets that several records share, and number them.

Buckets with one record affect nothing and are left out.
"""

from typing import Any, Final, NamedTuple

SORT_BYTES: Final = 48  # per bucket while they are sorted


class BucketMembers(NamedTuple):
    """The members of buckets that several records share.

    Attributes:
        positions: Of records, an array; a record is a member of each of its buckets.
        numbers: The number of the bucket of each member, from 0 on.
        buckets: The number of buckets; the next numbers begin after them.
    """

    positions: Any
    numbers: Any
    buckets: int


def equal_buckets(buckets: Any) -> BucketMembers:
    """Return the members of the buckets that occur several times in an array."""
    import numpy

    order = numpy.argsort(buckets, kind="stable")
    ordered = buckets[order]
    again = numpy.zeros(len(buckets) + 1, bool)  # equal to the one before
    again[1:-1] = ordered[1:] == ordered[:-1]
    shared = again[:-1] | again[1:]
    first = ~again[:-1] & shared
    numbers = (numpy.cumsum(first) - 1)[shared]
    return BucketMembers(order[shared], numbers, int(first.sum()))
