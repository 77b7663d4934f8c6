"""Imported once by the server that an executor forks its step processes from.

Dagster imports much of itself only when a run first needs it: storages, execution plans, what
crosses between processes, some 500 modules. Every step process would do that anew, for half a
second. A run of nothing in memory has it imported here, before the first step is forked, whatever
the modules are called in this version of Dagster. It leaves no thread, file or connection behind
that step processes would share.
"""

import logging
from typing import Final

import dagster as dg

import dagster_dataops.assets.definitions
import dagster_dataops.assets.ops
import dagster_dataops.execution.executor  # noqa: F401 - imported for those who are forked

_SILENT: Final = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def warm_up() -> None:
    """Materialize an empty asset in memory."""

    @dg.asset
    def nothing() -> None:
        """Hold nothing."""

    dg.materialize([nothing], run_config=_SILENT)


def _try_to_warm_up() -> None:
    try:
        warm_up()
    except Exception:
        # Without it steps start more slowly; with the error there would be no server at all.
        logging.getLogger("dagster_dataops").warning("steps will start slowly", exc_info=True)


_try_to_warm_up()
