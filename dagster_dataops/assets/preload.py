"""Imported once by the server that an executor forks its step processes from.

Dagster imports much of itself only when a run first needs it: storages, execution plans, what
crosses between processes. Every step process would do that anew, for most of a second. A run of
nothing in a throw-away instance has it imported here, before the first step is forked, whatever
the modules are called in this version of Dagster. It leaves no thread, file or connection behind
that step processes would share.
"""

import logging
import tempfile

import dagster as dg

import dagster_dataops.assets.definitions
import dagster_dataops.assets.ops
import dagster_dataops.execution.executor  # noqa: F401 - imported for those who are forked

_SILENT = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def warm_up() -> None:
    """Materialize an empty asset in an instance that is deleted again."""

    @dg.asset
    def nothing() -> None:
        """Hold nothing."""

    with tempfile.TemporaryDirectory(prefix="dataops-preload-") as folder:
        overrides = {"telemetry": {"enabled": False}}
        with dg.DagsterInstance.local_temp(folder, overrides=overrides) as instance:
            dg.materialize([nothing], instance=instance, run_config=_SILENT)


def _try_to_warm_up() -> None:
    try:
        warm_up()
    except Exception:
        # Without it steps start more slowly; with the error there would be no server at all.
        logging.getLogger("dagster_dataops").warning("steps will start slowly", exc_info=True)


if not __name__.endswith("__main__"):
    _try_to_warm_up()
