"""Process environment: the properties that a worker must share with this process.

A running worker receives the variables (`environment`) by message. All other properties
(`surroundings`) are fixed at its start: it can be reused if they are still the same.
"""

import os
import resource
import sys
from collections.abc import Sequence
from subprocess import DEVNULL, Popen
from typing import Any, Final

import orjson

# Variables that an interpreter or a library reads at its start; workers receive all others.
_AT_START: Final = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_")
_PREPARE: Final = "import sys, json; given = json.loads(sys.argv[1]); sys.path[:] = given['path']; "
_LIMITS: Final = sorted(
    {value for name, value in vars(resource).items() if name.startswith("RLIMIT_")}
)


def place() -> tuple[object, ...]:
    """Return working folder and file mode mask, which an operator may change."""
    return _working_directory(), _file_mode_mask()


def surroundings() -> tuple[object, ...]:
    """Return the properties that a process inherits at its start."""
    return (
        {name: value for name, value in os.environ.items() if name.startswith(_AT_START)},
        list(sys.path),
        place(),
        os.getpgrp(),
        os.getsid(0),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getaffinity(0),
        limits(),
        (os.getresuid(), os.getresgid()),
    )


def limits() -> dict[int, tuple[int, int]]:
    """Return the soft and the hard limit of each resource of this process."""
    return {limit: resource.getrlimit(limit) for limit in _LIMITS}


def circumstances() -> object:
    """Return the properties that a worker inherits at its start; ``None`` if unknown.

    A worker whose properties are unknown serves a single run.
    """
    return (surroundings(), environment()) if sys.platform == "linux" else None


def start_interpreter(code: str, descriptors: Sequence[int], **options: Any) -> Popen[bytes]:
    """Start an interpreter with the module path of this one, and without its main module.

    Args:
        code: Its program. The dict ``given`` holds the given values.
        descriptors: Descriptors that it inherits.
        options: Values that JSON can hold.
    """
    values = orjson.dumps({"path": sys.path, **options}).decode()
    command = [sys.executable, "-c", _PREPARE + code, values]
    return Popen(command, pass_fds=descriptors, stdin=DEVNULL)  # noqa: S603 - our own code


def environment() -> bytes:
    """Return all current variables as ``name=value``, separated by zero bytes."""
    return b"\0".join(b"%b=%b" % variable for variable in os.environb.items()) or b"\0"


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - compared, never used as a path
    except FileNotFoundError:
        return None


def _file_mode_mask() -> bytes:
    """Return the mask's line in ``/proc``; `os.umask` would change the mask for a moment."""
    with open("/proc/self/status", "rb") as status:  # noqa: PTH123 - for every worker
        return next((line for line in status if line.startswith(b"Umask:")), b"")
