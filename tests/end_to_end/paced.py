"""The speed of operators under test, and their calls: shared by the code locations.

The environment variable SLOW_PIPELINE_HOME names a folder. For every node it contains
``<node>.calls`` with one line per call (record, process, time). ``<node>.pace`` makes a node slow:
seconds per record, the first slow record, and the first record that is held until a later pace
lets it pass.
"""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

HOME = Path(os.environ["SLOW_PIPELINE_HOME"])


def called(record: dict, node: str) -> None:
    """Record a call of the operator of ``node``."""
    descriptor = os.open(HOME / f"{node}.calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, f"{record['id']} {os.getpid()} {time.time()}\n".encode())
    os.close(descriptor)


def pauses(record: dict, node: str) -> Iterator[float]:
    """Record a call of the operator of ``node``, and yield the seconds of each of its pauses."""
    called(record, node)
    seconds, first, _ = pace_of(node)
    if record["id"] >= first:
        yield seconds
    while record["id"] >= pace_of(node)[2]:
        yield 0.05


def pace_of(node: str) -> tuple[float, float, float]:
    """Return the seconds per record, the first slow record and the first one that is held."""
    path = HOME / f"{node}.pace"
    if not path.exists():
        return 0.0, math.inf, math.inf
    seconds, first, held = map(float, path.read_text().split())
    return seconds, first, held
