"""The operator of the tests of Slurm: a module of its own, which each task imports in no time."""

import os
import signal
import time
from pathlib import Path

from dagster_dataops import data_register


@data_register("data.slurm_tests")
def works(record, seconds=0.0, flag=""):
    """Act on ``record["do"]``; a flag file makes a death happen once, and ends a wait."""
    time.sleep(seconds)
    while record["do"] == "wait" and not Path(flag).exists():
        time.sleep(0.02)
    if record["do"] == "fail":
        raise ValueError(f"record {record['n']}")
    if record["do"] == "die" and not (flag and Path(flag).exists()):
        Path(flag or os.devnull).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return [record] * (record["n"] % 3)
