"""cases: which or how many cases a test tries."""

import os
from typing import Final, TypeVar

T = TypeVar("T")

_IS_CAMPAIGN: Final = "DATAOPS_CAMPAIGN" in os.environ


def cases(sample: T, campaign: T) -> T:
    """Return the sample, or what a campaign tries if ``DATAOPS_CAMPAIGN`` is set.

    The environment is read on import, because a fixture removes these variables from every test.
    """
    return campaign if _IS_CAMPAIGN else sample
