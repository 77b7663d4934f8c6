"""Idle workers: processes that have served a run and wait, modules loaded, for the next one.

They belong to this process and to none of its runs, hold no lock, input or segment, and end with
it, or by themselves after a minute without a run. What modules keep in globals stays as long as the
worker.
"""

import atexit
import os
import sys
import threading
from typing import Final

from dagster_dataops.execution.workers.process_environment import environment, surroundings
from dagster_dataops.execution.workers.worker_process import WorkerProcess, close_all

_GRACE_SECONDS: Final = 1.0


class IdleWorkers:
    """The idle workers of this process; runs in several threads share them."""

    def __init__(self) -> None:
        self._workers: list[WorkerProcess] = []
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._workers)

    @property
    def pids(self) -> list[int]:
        """Process ids of the idle workers."""
        return [worker.pid for worker in list(self._workers)]

    def keep(self, worker: WorkerProcess) -> None:
        """Keep ``worker`` for another run."""
        with self._lock:
            ended = [each for each in self._workers if each.poll()]
            self._workers = [each for each in self._workers if each not in ended]
            # The last one is taken first, so that one that still loads a module is taken last.
            self._workers.insert(len(self._workers) if worker.ready else 0, worker)
        for each in ended:
            each.close()

    def take(self) -> WorkerProcess | None:
        """Return a worker whose circumstances have not changed since; ``None`` if there is none.

        Ends the workers looked at before it, whose circumstances have changed.
        """
        now = circumstances() if self else None
        while worker := self._pop():
            if worker.circumstances == now and not worker.poll():
                return worker
            worker.end(_GRACE_SECONDS)
        return None

    def end(self) -> None:
        """End every idle worker."""
        while worker := self._pop():
            worker.end(_GRACE_SECONDS)

    def forget(self) -> None:
        """Begin anew, in a forked child: the workers are its parent's."""
        self._workers = []
        self._lock = threading.Lock()

    def _pop(self) -> WorkerProcess | None:
        with self._lock:
            return self._workers.pop() if self._workers else None


def circumstances() -> object:
    """Return what a worker inherits from this process when it starts; ``None`` if unknown.

    A worker with unknown circumstances serves a single run.
    """
    return (surroundings(), environment()) if sys.platform == "linux" else None


idle_workers: Final = IdleWorkers()


def _begin_anew() -> None:
    idle_workers.forget()
    close_all()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(idle_workers.end)
