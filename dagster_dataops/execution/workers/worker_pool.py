"""WorkerPool: start or reuse worker processes for one run, and end them or keep them afterwards.

If it is safe, workers are forked from this process, with the operator in their memory, for only
this run. Forking a process that has threads can deadlock the child. Then workers receive the
operator by message and serve one run after another. A server without threads forks these; without a
server, a new interpreter is started.
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Connection, Pipe
from typing import Final, NoReturn

import orjson

from dagster_dataops.execution.workers import fork_server
from dagster_dataops.execution.workers.heartbeat import Heartbeat
from dagster_dataops.execution.workers.idle_workers import idle_workers
from dagster_dataops.execution.workers.parent_death import end_with_parent
from dagster_dataops.execution.workers.process_environment import (
    circumstances,
    start_interpreter,
)
from dagster_dataops.execution.workers.protocol import STOP
from dagster_dataops.execution.workers.signals import set_signals, signals_held_back
from dagster_dataops.execution.workers.standard_streams import send_streams
from dagster_dataops.execution.workers.worker_main import Assignment, end, see_gpus, serve
from dagster_dataops.execution.workers.worker_process import WorkerProcess
from dagster_dataops.foundation.concurrency.fork_safety import leave_inherited_garbage, may_fork
from dagster_dataops.operators.definition.operator import Operator
from dagster_dataops.operators.pickling import ship

_GRACE_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 5.0  # seconds on a busy machine; a new worker takes longer
_SERVERS: Final = 2  # the first may have been killed
_BOOT: Final = (
    "from dagster_dataops.execution.workers.worker_main import main; "
    "main(given['connection'], given['parent_pipe'])"
)
_NO_SEGMENT: Final = -1

# Seconds from the start of a worker until it was ready, by the module of its operator.
_start_seconds: Final[dict[str, float]] = {}


class WorkerPool:
    """The worker processes of one run.

    Args:
        operator: The operator to run.
        gpus: `CUDA_VISIBLE_DEVICES` of each worker, at most as many as there are; empty if they do
            not divide the GPUs. A worker that replaces a dead one gets its GPUs.

    Attributes:
        workers: The workers that have not ended.
    """

    def __init__(self, operator: Operator, gpus: tuple[str, ...] = ()) -> None:
        self._operator = operator
        self._module = operator.__dataops__.spec.target.__module__
        self._settings = operator.__dataops__.resolved
        self._free_gpus = list(gpus)
        # A process that has initialized CUDA keeps its GPUs.
        self._fresh = self._settings.fresh_workers or bool(gpus)
        self._payload: bytes | None = None
        self._stopped = False
        self.workers: list[WorkerProcess] = []
        self._poll = select.poll()
        self._by_descriptor: dict[int, WorkerProcess] = {}

    def start(self, assignment: Assignment) -> WorkerProcess:
        """Start one worker, or take an idle one.

        If it dies at once, `wait_for_messages` reports its end.

        Raises:
            WorkerError: The operator cannot be sent to another process.
            OSError: The system refuses another process.
        """
        if self._free_gpus:
            assignment = replace(assignment, gpus=self._free_gpus.pop(0))
        with signals_held_back():
            if may_fork():
                worker = self._forked(assignment, self._heartbeat())
            else:
                if self._payload is None:
                    self._payload = ship(self._operator)
                worker = (None if self._fresh else idle_workers.take()) or _started()
                self._send(worker, assignment, self._payload)
            worker.gpus = assignment.gpus
            return self._added(worker)

    @property
    def start_seconds(self) -> float:
        """Seconds until a new worker with the operator's module was ready; 0 if unknown."""
        return _start_seconds.get(self._module, 0.0)

    def mark_ready(self, worker: WorkerProcess) -> None:
        """Record that a worker is ready."""
        worker.mark_ready()
        if worker.circumstances is not None:
            seconds = worker.ready_at - worker.begun_at
            known = 0.0 if worker.fresh else self.start_seconds
            _start_seconds[self._module] = max(known, seconds)

    def _heartbeat(self) -> Heartbeat | None:
        return Heartbeat() if self._settings.timeout is not None else None

    def _added(self, worker: WorkerProcess) -> WorkerProcess:
        self.workers.append(worker)
        for descriptor in worker.descriptors:
            self._by_descriptor[descriptor] = worker
            self._poll.register(descriptor, select.POLLIN)
        return worker

    def _remove(self, worker: WorkerProcess) -> None:
        for descriptor in worker.descriptors:
            self._poll.unregister(descriptor)
        self.workers.remove(worker)

    def _send(self, worker: WorkerProcess, assignment: Assignment, payload: bytes) -> None:
        """Send a worker the run to serve."""
        heartbeat = self._heartbeat()
        worker.begin(assignment.segment, heartbeat)
        with suppress(OSError):
            send_streams(worker.connection, _descriptor_of(heartbeat))
            worker.connection.send_bytes(payload)
            worker.connection.send_bytes(orjson.dumps(asdict(assignment), tuple))

    def wait_for_messages(self, seconds: float) -> dict[WorkerProcess, bool]:
        """Wait up to ``seconds`` until workers send a message or end.

        Returns:
            These workers, and whether there is a message. A worker without a message has ended,
            even if a process that it started still holds its pipe.
        """
        workers: dict[WorkerProcess, bool] = {}
        for number, _ in self._poll.poll(seconds * 1000):
            worker = self._by_descriptor[number]
            workers[worker] = workers.get(worker, False) or number == worker.connection.fileno()
        return workers

    def _forked(self, assignment: Assignment, heartbeat: Heartbeat | None) -> WorkerProcess:
        """Return a worker that is a copy of this process and has the operator in its memory."""
        assignment = replace(assignment, heartbeat=_descriptor_of(heartbeat))
        mine, theirs = Pipe()
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            pid = os.fork()
            if not pid:
                self._run_as_worker(assignment, theirs, reader, (mine.fileno(), writer))
        except OSError:
            os.close(writer)
            raise
        finally:
            os.close(reader)
            theirs.close()
        return WorkerProcess(pid, mine, assignment.segment, heartbeat, parent_pipe=writer)

    def _run_as_worker(
        self,
        assignment: Assignment,
        connection: "Connection[bytes, bytes]",
        parent_pipe: int,
        parents: tuple[int, ...],
    ) -> NoReturn:
        leave_inherited_garbage()
        try:
            for descriptor in parents:
                os.close(descriptor)
            end_with_parent(parent_pipe)
            termination = set_signals()
            see_gpus(assignment.gpus)
            serve(connection, assignment, self._operator, termination)
        except BaseException:  # noqa: BLE001 - nothing may reach the parent's code above us
            sys.excepthook(*sys.exc_info())
            os._exit(70)
        end()

    def discard(self, worker: WorkerProcess) -> None:
        """Remove a worker that has ended."""
        worker.wait(_GRACE_SECONDS)
        self._remove(worker)
        if worker.gpus:
            self._free_gpus.insert(0, worker.gpus)
        worker.end(_GRACE_SECONDS)

    def stop(self) -> None:
        """Send the workers the message that the run is over."""
        self._stopped = True
        for worker in self.workers:
            with suppress(OSError):
                worker.connection.send_bytes(STOP)

    def terminate(self, number: int = signal.SIGTERM) -> None:
        """Make the workers write their finished records and end; by `DRAIN` after begun calls."""
        self._stopped = False
        for worker in self.workers:
            worker.signal(number)

    def close(self, seconds: float) -> None:
        """Keep the workers that can serve other runs, and end all others.

        Args:
            seconds: Time for the others to end by themselves.
        """
        began = time.monotonic()
        try:
            for worker in list(self.workers):
                since = time.monotonic() - began
                if self._serves_others(worker):
                    self._give_back(worker, max(0.0, _IDLE_SECONDS - since))
                elif self._stopped and worker.circumstances is not None:
                    # It waits for another run then, until it is killed below.
                    worker.becomes_idle(max(0.0, seconds - since))
                else:
                    worker.wait(max(0.0, seconds - since))
            for worker in self.workers:
                worker.signal(signal.SIGKILL)
            for worker in self.workers:
                worker.wait(_GRACE_SECONDS)
        finally:  # if this is interrupted, the kernel ends them
            for worker in self.workers:
                worker.close()
            self.workers.clear()

    def _serves_others(self, worker: WorkerProcess) -> bool:
        """Return whether a worker has finished its work in this run, and may serve others."""
        shared = worker.circumstances is not None and not self._fresh
        return self._stopped and shared and worker.overdue is None

    def _give_back(self, worker: WorkerProcess, seconds: float) -> None:
        """Keep a worker for other runs, if it becomes idle in time."""
        if worker.ready and not worker.becomes_idle(seconds):
            return
        with signals_held_back():
            worker.behind += not worker.ready  # it still loads the operator
            worker.fresh = False
            self._remove(worker)
            idle_workers.keep(worker)


def _started() -> WorkerProcess:
    """Return a worker that shares no memory with this process and gets all data by message."""
    reader, writer = os.pipe()
    try:
        worker = None
        for _ in range(_SERVERS if fork_server.available() else 0):
            worker = worker or _served(reader, writer)
        return worker or _spawned(reader, writer)
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)


def _served(parent_pipe: int, writer: int) -> WorkerProcess | None:
    mine, theirs = Pipe()
    with theirs:
        process = fork_server.forked(theirs.fileno(), parent_pipe)
    if process is None:
        mine.close()
        return None
    return WorkerProcess(
        process.pid,
        mine,
        _NO_SEGMENT,
        served=process,
        parent_pipe=writer,
        circumstances=circumstances(),
    )


def _spawned(parent_pipe: int, writer: int) -> WorkerProcess:
    mine, theirs = Pipe()
    with theirs:  # closed before sending: a full pipe without a reader would block
        connection = theirs.fileno()
        process = start_interpreter(
            _BOOT, [connection, parent_pipe], connection=connection, parent_pipe=parent_pipe
        )
    process.returncode = 0  # it is reaped by its pid
    return WorkerProcess(
        process.pid, mine, _NO_SEGMENT, parent_pipe=writer, circumstances=circumstances()
    )


def _descriptor_of(heartbeat: Heartbeat | None) -> int:
    return -1 if heartbeat is None else heartbeat.descriptor
