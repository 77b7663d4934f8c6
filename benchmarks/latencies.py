"""Simulated call latencies, and the best time of a pool that does not know them beforehand."""

import hashlib
import heapq
import math
from collections.abc import Iterable
from statistics import NormalDist

MEDIAN_SECONDS = 0.050
P99_SECONDS = 1.0
_NORMAL = NormalDist(
    mu=math.log(MEDIAN_SECONDS),
    sigma=math.log(P99_SECONDS / MEDIAN_SECONDS) / NormalDist().inv_cdf(0.99),
)


def uniform(number: int) -> float:
    """A number in (0, 1) fixed by a record's id."""
    digest = hashlib.blake2b(b"%d" % number, digest_size=6, person=b"seconds").digest()
    drawn = int.from_bytes(digest)
    return (drawn + 0.5) / (1 << 48)


def latency(number: int) -> float:
    """Seconds, lognormal over all ids: median 50 ms, one in a hundred above 1 s."""
    return math.exp(_NORMAL.inv_cdf(uniform(number)))


def list_schedule(seconds: Iterable[float], workers: int) -> float:
    """Return the end of the last call if each starts, in order, when a worker is free."""
    free = [0.0] * workers
    end = 0.0
    for duration in seconds:
        finished = free[0] + duration
        heapq.heapreplace(free, finished)
        end = max(end, finished)
    return end
