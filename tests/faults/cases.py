"""cases: which or how many cases a test tries."""

import itertools
import os
from collections.abc import Iterable
from typing import Final, TypeVar

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

_IS_CAMPAIGN: Final = "DATAOPS_CAMPAIGN" in os.environ


def cases(sample: T, campaign: T) -> T:
    """Return the sample, or what a campaign tries if ``DATAOPS_CAMPAIGN`` is set.

    The environment is read on import, because a fixture removes these variables from every test.
    """
    return campaign if _IS_CAMPAIGN else sample


def paired(first: Iterable[A], second: Iterable[B]) -> list[tuple[A, B]]:
    """Return all pairs in a campaign; else as few as have each value of both at least once."""
    ones, others = list(first), list(second)
    count = max(len(ones), len(others))
    sample = [(ones[n % len(ones)], others[n % len(others)]) for n in range(count)]
    return cases(sample, campaign=list(itertools.product(ones, others)))
