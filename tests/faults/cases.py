"""cases: how many cases a test tries."""

import os
from typing import Final

_IS_CAMPAIGN: Final = "DATAOPS_CAMPAIGN" in os.environ


def cases(sample: int, campaign: int) -> int:
    """Return the first number, or the second one if ``DATAOPS_CAMPAIGN`` is set.

    The environment is read on import, because a fixture removes these variables from every test.
    """
    return campaign if _IS_CAMPAIGN else sample
