"""Kill and suspend the worker processes of a stream while it is read."""

import multiprocessing
import os
import random
import signal
import subprocess
from contextlib import suppress

_PAUSE = 0.02  # seconds for which a worker is suspended


def workers():
    """Return the process ids of the worker processes of this process."""
    return [one.pid for one in multiprocessing.active_children() if one.name == "stream-worker"]


def read_while_disturbed(stream, seed, disturbances, suspended=False):
    """Read a stream; kill, or suspend for a moment, a worker after some of its items.

    Args:
        stream: The stream.
        seed: The seed of the choice of items and workers.
        disturbances: The share of items after which a worker is disturbed.
        suspended: Whether workers are also suspended.

    Returns:
        The items with the states after them, and the number of disturbances.
    """
    choices = random.Random(seed)
    found, count = [], 0
    for item in stream:
        found.append((item, stream.state_dict()))
        if choices.random() < disturbances and (alive := workers()):
            disturb(choices.choice(alive), suspended=suspended and choices.random() < 0.5)
            count += 1
    return found, count


def disturb(worker, *, suspended=False):
    """Kill a worker; or suspend it, and let another process resume it after a moment."""
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGSTOP if suspended else signal.SIGKILL)
    if suspended:
        command = f"sleep {_PAUSE}; kill -CONT {worker} 2>/dev/null; true"
        _resuming[:] = [one for one in _resuming if one.poll() is None]
        _resuming.append(subprocess.Popen(["sh", "-c", command]))


_resuming = []
