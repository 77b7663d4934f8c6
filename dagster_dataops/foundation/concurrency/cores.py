"""Count the cores that this process may use: its CPU affinity, limited by cgroup quotas.

Containers and batch systems limit the CPU time of a group of processes by a quota, while all cores
stay visible.
"""

import math
import os
from functools import cache
from pathlib import Path
from typing import Final

_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_HIERARCHIES: Final = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Return the number of usable cores, at least 1.

    The cgroup quota is read once per process and rounded up.
    """
    if hasattr(os, "process_cpu_count"):  # Python 3.13; respects PYTHON_CPU_COUNT
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
    """Return the smallest quota of a process's cgroups, in cores; infinite without a quota.

    Args:
        membership: The file that lists the groups, like ``/proc/self/cgroup``.
        hierarchies: The folder of the groups' files, like ``/sys/fs/cgroup``.
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
    """Return the folders of a group and its parents; a container may hide some of them."""
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
