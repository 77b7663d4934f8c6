"""Latency: the seconds of calls as counts, which can be summed over runs and processes.

A call is counted in a bucket of a geometric scale, so that quantiles are exact to about 5 %.
"""

import math
from collections.abc import Mapping
from typing import Final

LATENCY: Final = "latency"  # the table of the counts
_RATIO: Final = 1.1  # of the bounds of a bucket
_LEAST_SECONDS: Final = 0.001
_LOG_RATIO: Final = math.log(_RATIO)


def latency_count(seconds: float) -> str:
    """Return the name of the count to which a call of that many seconds belongs."""
    return f"{LATENCY}/{math.ceil(math.log(max(seconds, _LEAST_SECONDS)) / _LOG_RATIO)}"


def latency_quantile(rows: Mapping[str, float], share: float) -> float:
    """Return the seconds that a share of the calls did not exceed.

    ``rows`` has the number of calls by bucket; the share is from 0 to 1.
    """
    ordered = sorted((int(bucket), number) for bucket, number in rows.items())
    wanted = share * sum(number for _, number in ordered)
    passed = 0.0
    for bucket, number in ordered:
        passed += number
        if passed >= wanted:
            middle: float = _RATIO ** (bucket - 0.5)
            return round(middle, 4)
    return 0.0
