"""Retrying: how long to wait before a call is tried again, and when too many calls have failed.

Records that failed, requests to language models and requests of a batch API use it.
"""

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

STOP: Final = math.inf  # no pause helps
_MOST_DOUBLINGS: Final = 60


class Backoff(NamedTuple):
    """The pauses before further tries of one call.

    Attributes:
        first_seconds: The longest pause before the first further try; doubled before each other.
        longest_seconds: The longest pause of all.
    """

    first_seconds: float
    longest_seconds: float

    def pause(self, number: int) -> float:
        """Return the seconds before a further try; a random half spreads the calls of many callers.

        Args:
            number: Which further try it is, counted from 1.
        """
        doublings = min(number - 1, _MOST_DOUBLINGS)
        longest = min(self.first_seconds * 2.0**doublings, self.longest_seconds)
        return longest * random.uniform(0.5, 1)  # noqa: S311 - spreads calls, protects nothing


class FailureRow:
    """Counts failures of each kind that follow one another; not safe for threads.

    Args:
        limit: Number of failures of one kind that make a row; 0 for never.
        pauses: The pauses of all calls after rows, in seconds, in order. After the last one, and
            without any, a row ends the run.

    Attributes:
        failed_since: The failures of each kind since the last success or row.
    """

    def __init__(self, limit: int, pauses: Sequence[float] = ()) -> None:
        self._limit = limit
        self._pauses = pauses
        self._rows = 0
        self.failed_since: Counter[str] = Counter()

    def failed(self, kind: str = "") -> float:
        """Count a failure.

        Returns:
            The seconds for which all calls should pause now: 0 for none, `STOP` to end the run.
        """
        self.failed_since[kind] += 1
        if not 0 < self._limit <= self.failed_since[kind]:
            return 0.0
        self.failed_since.clear()
        self._rows += 1
        return self._pauses[self._rows - 1] if self._rows <= len(self._pauses) else STOP

    def succeeded(self) -> None:
        """Note a success: counts of failures and pauses start from the beginning."""
        self.failed_since.clear()
        self._rows = 0
