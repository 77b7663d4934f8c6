"""Asset checks declared in one line each.

>>> checks = {"node": [checks.row_count(min=1), checks.no_nulls("text"), checks.unique("id")]}

All checks of an asset read its published file in one pass, in a step after the operator's step.
They can be run without the operator, as often as needed. If one step runs a whole pipeline,
blocking checks run inside that step. A blocking check that fails stops the assets downstream in
both cases. Checks that installed packages add by entry points are attributes, too.
"""

from typing import TYPE_CHECKING

from dagster_dataops.assets.checks.check_functions import *  # noqa: F403 - its public names
from dagster_dataops.assets.checks.check_functions import __all__ as __all__  # noqa: PLC0414 - re-exported
from dagster_dataops.assets.checks.check_functions import added_check, added_checks

if not TYPE_CHECKING:  # a type checker still finds misspelt names

    def __getattr__(name: str) -> object:
        check = None if name.startswith("_") else added_check(name)
        if check is None:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return check


def __dir__() -> list[str]:
    return [*__all__, *added_checks()]
