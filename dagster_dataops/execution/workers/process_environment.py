"""Surroundings: what a process has from its parent; workers get it as it is when they start.

What can be set in a process that is there already is sent to it, `environment`. For all else the
process is one that was started in the same `surroundings`.
"""

import os
import resource
import sys
from typing import Final

# Variables that count when an interpreter or a library starts; all others are sent to every worker.
_AT_START: Final = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_")
_LIMITS: Final = sorted(
    {value for name, value in vars(resource).items() if name.startswith("RLIMIT_")}
)


def place() -> tuple[object, ...]:
    """Return where this process reads and writes files, which an operator may have changed."""
    return _working_directory(), _file_mode_mask()


def surroundings() -> tuple[object, ...]:
    """Return what a process has from its parent for good, and a worker is to have as of now."""
    return (
        {name: value for name, value in os.environ.items() if name.startswith(_AT_START)},
        list(sys.path),
        place(),
        os.getpgrp(),
        os.getsid(0),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getaffinity(0),
        [resource.getrlimit(limit) for limit in _LIMITS],
        (os.getresuid(), os.getresgid()),
    )


def environment() -> bytes:
    """Return all variables as they are now, ``name=value``, with a zero byte between them."""
    return b"\0".join(b"%b=%b" % variable for variable in os.environb.items()) or b"\0"


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - compared, never used as a path
    except FileNotFoundError:
        return None


def _file_mode_mask() -> bytes:
    """Return the line of it; asking the system for it would change it for a moment."""
    with open("/proc/self/status", "rb") as status:  # noqa: PTH123 - for every worker
        return next((line for line in status if line.startswith(b"Umask:")), b"")
