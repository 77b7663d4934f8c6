"""Whether this process can fork safely, and what a forked copy may not do."""

import gc
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

_RETURNED: Final = (
    "dagster-dataops: a process forked by an operator returned from the operator's call; it is "
    "ended now. End forked processes with os._exit().\n"
)
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
    return threads <= {threading.get_native_id()}.union(*(thread() for thread in _waiting))


def leave_inherited_garbage() -> None:
    """Finalize no garbage of the parent in this copy of it.

    A finalizer may wait for a thread that only the parent has, such as those of FFmpeg.
    """
    gc.freeze()


class ForkGuard:
    """Ends a forked copy of the process that creates it.

    An operator may fork. A copy that returns from the operator's call would continue the run, and
    journal every record a second time. Check for a copy each time control returns from the
    operator, before any lock is taken: another thread may have held that lock when the copy was
    made.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()

    def check(self) -> None:
        """End this process at once if it is a copy."""
        if os.getpid() != self._pid:
            try:
                os.write(2, _RETURNED.encode())
            finally:
                os._exit(1)
