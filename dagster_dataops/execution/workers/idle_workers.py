"""Idle workers: processes that wait for the next run, with their modules loaded.

They belong to this process, not to one of its runs, and hold no lock, input or segment. They end
with this process, or after a minute without a run. Global variables of modules live as long as the
worker.
"""

import atexit
import os
import threading
from typing import Final

from dagster_dataops.execution.workers.process_environment import circumstances
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
            # `take` begins at the end; a worker that still loads a module comes last.
            self._workers.insert(len(self._workers) if worker.ready else 0, worker)
        for each in ended:
            each.close()

    def take(self) -> WorkerProcess | None:
        """Return a worker whose circumstances have not changed; ``None`` if there is none.

        Workers whose circumstances have changed end.
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
        """Start empty in a forked child: the workers belong to its parent."""
        self._workers = []
        self._lock = threading.Lock()

    def _pop(self) -> WorkerProcess | None:
        with self._lock:
            return self._workers.pop() if self._workers else None


idle_workers: Final = IdleWorkers()


def _begin_anew() -> None:
    idle_workers.forget()
    close_all()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(idle_workers.end)
