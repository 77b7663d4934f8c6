"""Starts and ends worker processes.

By ``fork`` from a process with a single thread, which costs a few milliseconds and carries any
operator over. Forking a threaded process can deadlock the child: there a lean process kept for it
is forked instead, or, where that cannot be had, a fresh interpreter is started.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Connection, Pipe
from typing import Final, NoReturn

import orjson

from dagster_dataops.execution import fork_server
from dagster_dataops.execution.handle import Worker
from dagster_dataops.execution.heartbeat import Heartbeat
from dagster_dataops.execution.lifeline import bind_to_lifeline
from dagster_dataops.execution.messages import STOP
from dagster_dataops.execution.termination import set_signals, signals_held_back
from dagster_dataops.execution.worker import Assignment, end, serve
from dagster_dataops.forking import may_fork
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.shipping import ship

_GRACE_SECONDS: Final = 1.0
_SERVERS: Final = 2  # one may have been killed; where two do not help, a third would not
_BOOT: Final = (
    "import sys, json; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from dagster_dataops.execution.worker import main; "
    "main(a['connection'], a['lifeline'], a['heartbeat'])"
)
_NO_SEGMENT: Final = -1


class WorkerPool:
    """The worker processes of one run.

    Args:
        operator: What they run.
        unshared: Descriptors that forked workers must not keep, such as the folder's lock.

    Attributes:
        workers: Those that are there.
        started: Whether any was started.
    """

    def __init__(self, operator: Operator, unshared: tuple[int, ...]) -> None:
        self._operator = operator
        self._unshared = unshared
        self._payload: bytes | None = None
        self._begun: Worker | None = None  # one without an assignment
        self.started = False
        self._lifeline_reader, self._lifeline_writer = os.pipe()
        self.workers: list[Worker] = []
        self._poll = select.poll()
        self._by_descriptor: dict[int, Worker] = {}

    def begin(self) -> None:
        """Have a worker load the operator that will be started, if one is at hand for that."""
        if fork_server.running() and not may_fork():
            with signals_held_back():
                self._begun = self._added(self._sent_to(self._heartbeat()))

    def start(self, assignment: Assignment) -> Worker:
        """Start one worker; it may die at once, which shows as its end."""
        with signals_held_back():
            self.started = True
            worker, self._begun = self._begun, None
            if worker is None and may_fork():
                return self._added(self._forked(assignment, self._heartbeat()))
            worker = worker or self._added(self._sent_to(self._heartbeat()))
            worker.segment = assignment.segment
            with suppress(OSError):
                worker.connection.send_bytes(orjson.dumps(asdict(assignment)))
            return worker

    def _heartbeat(self) -> Heartbeat | None:
        timed = self._operator.__dataops__.resolved.timeout is not None
        return Heartbeat() if timed else None

    def _added(self, worker: Worker) -> Worker:
        self.workers.append(worker)
        for descriptor in worker.descriptors:
            self._by_descriptor[descriptor] = worker
            self._poll.register(descriptor, select.POLLIN)
        return worker

    def _forked(self, assignment: Assignment, heartbeat: Heartbeat | None) -> Worker:
        """Return a worker with a copy of this process's memory, the operator in it."""
        mine, theirs = Pipe()
        told = replace(assignment, heartbeat=_descriptor_of(heartbeat))
        pid = self._fork(told, mine, theirs)
        theirs.close()
        return Worker(pid, mine, assignment.segment, heartbeat)

    def _sent_to(self, heartbeat: Heartbeat | None) -> Worker:
        """Return a worker that shares no memory with this process, and is sent the operator."""
        if self._payload is None:
            self._payload = ship(self._operator)
        worker = None
        for _ in range(_SERVERS if fork_server.available() else 0):
            worker = worker or self._served(heartbeat)
        if worker is None:
            mine, theirs = Pipe()
            pid = self._spawn(heartbeat, theirs)
            theirs.close()  # before anything is sent: a full pipe that nobody reads would block
            worker = Worker(pid, mine, _NO_SEGMENT, heartbeat)
        with suppress(OSError):
            worker.connection.send_bytes(self._payload)
        return worker

    def _served(self, heartbeat: Heartbeat | None) -> Worker | None:
        mine, theirs = Pipe()
        with theirs:
            process = fork_server.forked(
                theirs.fileno(), self._lifeline_reader, _descriptor_of(heartbeat)
            )
        if process is None:
            mine.close()
            return None
        return Worker(process.pid, mine, _NO_SEGMENT, heartbeat, process)

    def heard(self, seconds: float) -> dict[Worker, bool]:
        """Wait up to ``seconds`` for workers to say something or to end.

        Returns:
            The workers that have, and whether there is something to hear; one without has ended,
            though a process that it started may still hold its pipe.
        """
        found: dict[Worker, bool] = {}
        for number, _ in self._poll.poll(seconds * 1000):
            worker = self._by_descriptor[number]
            found[worker] = found.get(worker, False) or number == worker.connection.fileno()
        return found

    def _fork(
        self,
        assignment: Assignment,
        mine: "Connection[bytes, bytes]",
        theirs: "Connection[bytes, bytes]",
    ) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            self._live_as_worker(assignment, mine, theirs)
        return pid

    def _live_as_worker(
        self,
        assignment: Assignment,
        mine: "Connection[bytes, bytes]",
        theirs: "Connection[bytes, bytes]",
    ) -> NoReturn:
        try:
            os.close(self._lifeline_writer)
            bind_to_lifeline(self._lifeline_reader)
            termination = set_signals()
            mine.close()
            for worker in self.workers:
                worker.close()
            for descriptor in self._unshared:
                os.close(descriptor)
            serve(theirs, assignment, self._operator, termination)
        except BaseException:  # noqa: BLE001 - nothing may reach the parent's code above us
            sys.excepthook(*sys.exc_info())
            os._exit(70)
        end()

    def _spawn(self, heartbeat: Heartbeat | None, theirs: "Connection[bytes, bytes]") -> int:
        passed = [theirs.fileno(), self._lifeline_reader]
        if heartbeat is not None:
            passed.append(heartbeat.descriptor)
        boot = {
            "path": sys.path,
            "connection": passed[0],
            "lifeline": passed[1],
            "heartbeat": _descriptor_of(heartbeat),
        }
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", _BOOT, orjson.dumps(boot).decode()],
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
        )
        process.returncode = 0  # we reap it ourselves, by its pid
        return process.pid

    def discard(self, worker: Worker) -> None:
        """Forget a worker that has ended."""
        worker.wait(_GRACE_SECONDS)
        worker.signal(signal.SIGKILL)
        worker.wait(_GRACE_SECONDS)
        for descriptor in worker.descriptors:
            self._poll.unregister(descriptor)
        worker.close()
        self.workers.remove(worker)

    def dismiss(self) -> None:
        """End the workers once nothing is left to do."""
        for worker in self.workers:
            with suppress(OSError):
                worker.connection.send_bytes(STOP)

    def terminate(self) -> None:
        """Tell the workers to settle what they have finished and end."""
        for worker in self.workers:
            worker.signal(signal.SIGTERM)

    def close(self, seconds: float) -> None:
        """Wait ``seconds`` for the workers to end, then kill those that have not."""
        if self._lifeline_writer < 0:
            return
        until = time.monotonic() + seconds
        try:
            late = [w for w in self.workers if not w.wait(max(0.0, until - time.monotonic()))]
            for worker in late:
                worker.signal(signal.SIGKILL)
            for worker in late:
                worker.wait(_GRACE_SECONDS)
            for worker in self.workers:
                worker.close()
            self.workers.clear()
        finally:  # should this be interrupted: the kernel ends them
            os.close(self._lifeline_writer)
            os.close(self._lifeline_reader)
            self._lifeline_writer = self._lifeline_reader = -1


def _descriptor_of(heartbeat: Heartbeat | None) -> int:
    return -1 if heartbeat is None else heartbeat.descriptor
