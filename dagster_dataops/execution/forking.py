"""Forking: when this process can be forked without the child hanging on what a thread held."""

import sys
import threading
from pathlib import Path
from typing import Final

from dagster_dataops.datasets import background
from dagster_dataops.execution import bell

_TASKS: Final = Path("/proc/self/task")


def may_fork() -> bool:
    """Whether this process can be forked safely: Linux, no thread but those that only wait."""
    if sys.platform != "linux":
        return False
    try:
        threads = {int(task.name) for task in _TASKS.iterdir()}
    except OSError:
        return False
    waiting = background.native_ids() | bell.native_ids()
    return threads <= {threading.get_native_id(), *waiting}
