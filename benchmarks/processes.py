"""Process trees: their memory, their CPU seconds, and their end."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def tree(root: int) -> list[int]:
    """Return ``root`` and all its living descendants."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            with suppress(OSError):
                waiting.extend(map(int, children.read_text(encoding="ascii").split()))
    return found


def proportional_memory(processes: list[int]) -> int:
    """Return the PSS of ``processes`` together in bytes: shared pages count once."""
    return sum(map(_proportional_memory, processes))


def _proportional_memory(process: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(processes: list[int]) -> float:
    """Return the CPU seconds of living ``processes``, to a hundredth."""
    ticks = 0
    for process in processes:
        with suppress(OSError):
            text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
            user, system = text.rpartition(")")[2].split()[11:13]  # a name may contain brackets
            ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_memory(process: int) -> int:
    """Return the largest resident memory of a process since it started, in bytes."""
    for line in Path(f"/proc/{process}/status").read_bytes().splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def kill_session(leader: int) -> None:
    """SIGKILL the process group that ``leader`` leads, if it still has processes."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def end_tree(root: int) -> None:
    """SIGKILL ``root`` and all its descendants, those in other process groups included."""
    for process in tree(root):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def clean_up_when_terminated() -> None:
    """Turn SIGTERM into an ordinary exit, so that contenders end and inputs are deleted."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
