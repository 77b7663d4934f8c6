"""`ShardPool`: the worker processes of one reading; it replaces those that die."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from selectors import EVENT_READ, PollSelector
from typing import Final, NamedTuple

from dagster_dataops.errors import StreamWorkerError
from dagster_dataops.foundation.concurrency.fork_safety import may_fork
from dagster_dataops.streams.sharding.feeds import SentElements
from dagster_dataops.streams.sharding.shard_process import ShardProcess, check_sendable
from dagster_dataops.streams.sharding.shard_worker import READY
from dagster_dataops.streams.sharding.tasks import Start, StreamJob, Task, TaskResult, loads

_MOST_ELEMENTS: Final = 64  # of one task
_TASK_SECONDS: Final = 0.05  # the time that a task should take
_GROWTH: Final = 4  # a task has at most this many times the elements of a finished one
_UNMEASURED: Final = 2  # tasks of each worker while none is finished
_DEATHS_BEFORE_SPLIT: Final = 2
_DEATHS_OF_ELEMENT: Final = 3
_FAILED_STARTS: Final = 3
_KILLED_STARTS: Final = 10  # in a row, if a signal ended them: others may kill processes, too


class Limits(NamedTuple):
    """The sizes of a pool.

    Attributes:
        number: The number of workers.
        prefetch: The number of tasks for each worker that may be unfinished or not yet read.
        main_prefetch: The number of further finished tasks that may be not yet read.
    """

    number: int
    prefetch: int
    main_prefetch: int = 0

    @property
    def tasks(self) -> int:
        """The number of tasks of all workers that may be unfinished or not yet read."""
        return self.number * self.prefetch + self.main_prefetch


class _ShardWorker:
    """One worker process, its unfinished tasks in order, and the number of those that it got."""

    def __init__(self, process: ShardProcess) -> None:
        self.process, self.results = process, process.results
        self.tasks: deque[Task] = deque()
        self.ready = False
        self.sent = 0

    @property
    def ends(self) -> list[Connection]:
        """The open connections to it."""
        ends = (self.process.requests, self.process.results)
        return [end for end in ends if not end.closed]

    @property
    def watched(self) -> "list[Connection | int]":
        """Everything that is ready when it has sent something, or has ended."""
        sentinel = self.process.sentinel
        return [self.results, sentinel] if sentinel >= 0 else [self.results]

    def send(self, task: Task) -> None:
        """Send a task. A worker that has died is noticed later."""
        self.tasks.append(task)
        self.sent += 1
        with suppress(OSError):
            self.process.requests.send_bytes(task.request())


class ShardPool:
    """Worker processes that process the elements of a stream, each element in one of them.

    Args:
        job: The stages that the workers run.
        limits: The number of workers and of tasks.
        start: The encoded state at which reading starts.
        source: The elements, if the reading process sends them.

    Attributes:
        anchor: Where workers start that replace others: the encoded state before the oldest task,
            and the number of its first element.
    """

    def __init__(
        self, job: StreamJob, limits: Limits, start: bytes, source: SentElements | None
    ) -> None:
        self._job = job
        self._limits = limits
        self._source = source
        self.anchor = (start, 0)
        self._next = 0
        self._size = 1
        self._ended = False
        self._failed_starts = 0
        self._tasks: deque[Task] = deque()  # in order, until their outcomes are read
        self._forks = may_fork()
        if not self._forks:
            check_sendable(job)
        self._workers: list[_ShardWorker] = []
        self._selector = PollSelector()
        self._is_measured = False
        self._process = os.getpid()

    def tasks(self) -> Iterator[Task]:
        """Yield the finished tasks in order.

        Before asking for the next one, set `anchor` to the place after the task.

        Raises:
            StreamWorkerError: Workers cannot be started.
        """
        while len(self._workers) < self._limits.number:
            self._workers.append(self._started())
        while (task := self._finished_task()) is not None:
            yield task
            self._tasks.popleft()

    def stop(self) -> None:
        """Stop all workers. A fork of this process, which has inherited the pool, stops none."""
        if os.getpid() != self._process:
            return
        for worker in self._workers:
            worker.process.stop()
        self._workers = []

    def _finished_task(self) -> Task | None:
        """Finish and return the oldest task, and send more tasks to the workers."""
        while self._tasks or not self._ended:
            more = self._has_room()
            self._receive(wait=not more and not self._is_finished())
            if more:
                self._add_task()
            if self._is_finished():
                return self._tasks[0]
        return None

    def _is_finished(self) -> bool:
        if not self._tasks:
            return False
        task = self._tasks[0]
        return task.result is not None or task.exit_code is not None

    def _has_room(self) -> bool:
        """Return whether another task may be added.

        Outcomes that were not yet read count, so a slow reader holds the workers back.
        """
        if self._ended or len(self._tasks) >= self._limits.tasks:
            return False
        most = self._limits.prefetch if self._is_measured else _UNMEASURED
        return min(len(worker.tasks) for worker in self._workers) < min(most, self._limits.prefetch)

    def _add_task(self) -> None:
        task = Task(self._next, self._size)
        if self._source is not None:
            task.payload, self._ended = self._source.take(self._next, self._size)
            task.count = len(task.payload)
            if not task.payload:
                return
        self._next += task.count
        self._tasks.append(task)
        min(self._workers, key=lambda worker: (len(worker.tasks), worker.sent)).send(task)

    def _receive(self, *, wait: bool) -> None:
        """Receive the outcomes that are there, and replace dead workers; ``wait`` for any."""
        dead: dict[int, _ShardWorker] = {}
        for key, _ in self._selector.select(None if wait else 0):
            worker: _ShardWorker = key.data
            if key.fileobj is not worker.results or not self._read(worker):
                dead[id(worker)] = worker
        for worker in dead.values():
            while worker.results.poll() and self._read(worker):
                pass
            self._workers[self._workers.index(worker)] = self._replaced(worker)

    def _read(self, worker: _ShardWorker) -> bool:
        """Read the next message of a worker; return whether there was one."""
        try:
            data = worker.results.recv_bytes()
        except (EOFError, OSError):
            return False
        if data == READY:
            worker.ready, self._failed_starts = True, 0
            return True
        task = worker.tasks.popleft()
        result = task.result = loads(data)
        self._adapt(task, result)
        return True

    def _adapt(self, task: Task, result: TaskResult) -> None:
        if result.ended or result.error is not None:
            self._ended = True
        each = max(result.seconds, 1e-9) / max(1, task.count)
        fitting = int(_TASK_SECONDS / each)
        self._size = max(1, min(fitting, _GROWTH * task.count, _MOST_ELEMENTS))
        self._is_measured = True

    def _replaced(self, worker: _ShardWorker) -> _ShardWorker:
        """Start a worker for the tasks of one that died."""
        for end in worker.watched:
            self._selector.unregister(end)
        code = worker.process.stop()
        if worker.ready:
            self._count_death(worker.tasks, code)
        else:
            self._count_failed_start(code)
        new = self._started()
        for task in worker.tasks:
            new.send(task)
        return new

    def _count_failed_start(self, code: int) -> None:
        self._failed_starts += 1
        if self._failed_starts >= (_KILLED_STARTS if code < 0 else _FAILED_STARTS):
            reason = (
                f"{self._failed_starts} worker processes in a row ended at their start, the last "
                f"one with exit code {code}; its error output tells why"
            )
            raise StreamWorkerError("workers", reason)

    def _count_death(self, tasks: deque[Task], code: int) -> None:
        if not tasks:
            return
        task = tasks[0]
        task.deaths += 1
        if task.count == 1 and task.deaths >= _DEATHS_OF_ELEMENT:
            task.exit_code = code
            tasks.popleft()
        elif task.count > 1 and task.deaths >= _DEATHS_BEFORE_SPLIT:
            parts = task.split()
            tasks.popleft()
            tasks.extendleft(reversed(parts))
            at = self._tasks.index(task)
            del self._tasks[at]
            for part in reversed(parts):
                self._tasks.insert(at, part)

    def _started(self) -> _ShardWorker:
        """Start a worker process."""
        inherited = [end for worker in self._workers for end in worker.ends]
        start = Start(self._job, *self.anchor)
        try:
            worker = _ShardWorker(ShardProcess(start, forked=self._forks, inherited=inherited))
        except OSError as error:
            reason = f"a worker process cannot be started: {error}; use fewer workers"
            raise StreamWorkerError("workers", reason) from error
        for end in worker.watched:
            self._selector.register(end, EVENT_READ, worker)
        return worker
