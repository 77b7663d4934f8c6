"""Runs as forks of a process that has imported Dagster and the code location.

``dagster dev`` gives each run a new interpreter, whose imports take three seconds of a processor.
All else is the same: a run is a process of its own, which builds the definitions of its job.
"""

import multiprocessing
import sys
from multiprocessing import context, popen_forkserver


def start_warm(*modules: str) -> None:
    """Let a code server fork its runs. Elsewhere do nothing: steps are new interpreters.

    Args:
        *modules: Modules of the code location. They are not imported again when they are edited.
    """
    if "grpc" in sys.argv and multiprocessing.parent_process() is None:
        warm = ["dagster._grpc.impl", "dagster_dataops.assets.preload", *modules]
        multiprocessing.set_forkserver_preload(warm)
        context.SpawnProcess._Popen = staticmethod(popen_forkserver.Popen)
