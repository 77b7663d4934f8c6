"""Check whether this process can fork without a child blocked by a lock of another thread."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

_TASKS: Final = Path("/proc/self/task")
_waiting: Final[list[Callable[[], set[int]]]] = []


def register_waiting_threads(native_ids: Callable[[], set[int]]) -> None:
    """Register threads that only wait and hold no lock, so `may_fork` ignores them.

    Args:
        native_ids: Returns the native ids of the present threads.
    """
    _waiting.append(native_ids)


def may_fork() -> bool:
    """Return whether forking is safe: on Linux, with no threads but registered ones."""
    if sys.platform != "linux":
        return False
    try:
        threads = {int(task.name) for task in _TASKS.iterdir()}
    except OSError:
        return False
    return threads <= {threading.get_native_id()}.union(*(one() for one in _waiting))
