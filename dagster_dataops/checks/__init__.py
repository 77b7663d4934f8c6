"""Asset checks declared in one line each.

>>> checks = {"node": [checks.row_count(min=1), checks.no_nulls("text"), checks.unique("id")]}

All checks of an asset read its published file in one pass, in a step after the operator's step.
They can be run without the operator, as often as needed. If one step runs a whole pipeline,
blocking checks run inside that step. A blocking check that fails stops the assets downstream in
both cases.
"""

from dagster_dataops.assets.checks.check_functions import *  # noqa: F403 - its public names
from dagster_dataops.assets.checks.check_functions import __all__ as __all__


def __dir__() -> list[str]:
    return __all__
