"""Imports for the server process from which an executor forks step processes.

Dagster imports about 500 of its modules when a run first needs them, which takes each step process
half a second. Importing this module materializes an empty asset in memory, so that the server
imports them before it forks the first step. No thread, file or connection is left that step
processes would share.
"""

import logging
from typing import Final

import dagster as dg

import dagster_dataops.assets.definitions
import dagster_dataops.assets.ops
import dagster_dataops.execution.executor  # noqa: F401 - imported for the forked processes

_SILENT: Final = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def warm_up() -> None:
    """Materialize an empty asset in memory."""

    @dg.asset
    def nothing() -> None:
        """An empty asset."""

    dg.materialize([nothing], run_config=_SILENT)


def _try_to_warm_up() -> None:
    try:
        warm_up()
    except Exception:
        # Steps start more slowly without it; raising would stop the server.
        logging.getLogger("dagster_dataops").warning("steps will start slowly", exc_info=True)


_try_to_warm_up()
