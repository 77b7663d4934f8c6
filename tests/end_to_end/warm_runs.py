"""Runs and steps as forks of a process that has imported Dagster and the code location.

``dagster dev`` gives each run a new interpreter, whose imports take three seconds of a processor,
and each step of a multiprocess run another one. All else is the same: a run is a process of its
own, which builds the definitions of its job, and a step is a child of its run.
"""

import multiprocessing
import sys
from multiprocessing import context, popen_fork, popen_forkserver


def start_warm(*modules: str) -> None:
    """Let a code server fork its runs, and a run its steps.

    Args:
        *modules: Modules of the code location. They are not imported again when they are edited.
    """
    if "grpc" in sys.argv and multiprocessing.parent_process() is None:
        warm = ["dagster._grpc.impl", "dagster_dataops.assets.preload", *modules]
        multiprocessing.set_forkserver_preload(warm)
        context.SpawnProcess._Popen = staticmethod(popen_forkserver.Popen)
    else:  # the process of which runs are forks
        context.SpawnProcess._Popen = staticmethod(popen_fork.Popen)
