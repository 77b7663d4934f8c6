"""Forking: when this process can be forked without the child hanging on what a thread held."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

_TASKS: Final = Path("/proc/self/task")
_waiting: Final[list[Callable[[], set[int]]]] = []


def hinder_no_fork(native_ids: Callable[[], set[int]]) -> None:
    """Have threads left out of account that only wait and hold no lock.

    Args:
        native_ids: Returns the kernel's numbers of those that there are now.
    """
    _waiting.append(native_ids)


def may_fork() -> bool:
    """Whether this process can be forked safely: Linux, no thread but those that only wait."""
    if sys.platform != "linux":
        return False
    try:
        threads = {int(task.name) for task in _TASKS.iterdir()}
    except OSError:
        return False
    return threads <= {threading.get_native_id()}.union(*(one() for one in _waiting))
