"""How many cores this process may use: its affinity, less what its control groups allow.

Containers and batch systems limit the time of all processes of a group, a quota, and leave every
core visible.
"""

import math
import os
from functools import cache
from pathlib import Path
from typing import Final

_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_HIERARCHIES: Final = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    A quota is read once, and rounded up.
    """
    if hasattr(os, "process_cpu_count"):  # Python 3.13; knows of PYTHON_CPU_COUNT as well
        cores = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count()
    return math.ceil(max(1, min(cores or 1, _quota())))


@cache
def _quota() -> float:
    return quota(_MEMBERSHIP, _HIERARCHIES)


def quota(membership: Path, hierarchies: Path) -> float:
    """Return the least quota of a process's control groups, in cores; infinite for none.

    Args:
        membership: Lists the groups, as ``/proc/self/cgroup``.
        hierarchies: Where the groups' files are, as ``/sys/fs/cgroup``.
    """
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return math.inf
    least = math.inf
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if not controllers:
            least = min(least, *map(_quota_v2, _levels(hierarchies, group)))
        elif "cpu" in controllers.split(","):
            for name in (controllers, "cpu"):
                least = min(least, *map(_quota_v1, _levels(hierarchies / name, group)))
    return least


def _levels(hierarchy: Path, group: str) -> list[Path]:
    """Return the folders of a group and of those it is in; in a container these may be hidden."""
    parts = [part for part in group.split("/") if part not in {"", ".."}]
    return [hierarchy.joinpath(*parts[:depth]) for depth in range(len(parts) + 1)]


def _quota_v2(folder: Path) -> float:
    words = _words(folder / "cpu.max")
    return _ratio(*words) if len(words) == 2 else math.inf


def _quota_v1(folder: Path) -> float:
    allowed, period = (_words(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return _ratio(allowed[0], period[0]) if allowed and period else math.inf


def _ratio(allowed: str, period: str) -> float:
    try:
        ratio = int(allowed) / int(period)
    except (ValueError, ZeroDivisionError):  # "max"
        return math.inf
    return ratio if ratio > 0 else math.inf  # -1: no quota


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []
