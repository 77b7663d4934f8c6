"""Starts and ends worker processes.

By ``fork`` from a process with a single thread, which costs a few milliseconds and carries any
operator over; otherwise as a fresh lean interpreter, since forking a threaded process can
deadlock the child.
"""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import orjson

from dagster_dataops.datasets.background import background
from dagster_dataops.execution.messages import STOP, Range
from dagster_dataops.execution.worker import (
    Assignment,
    bind_to_lifeline,
    end,
    serve,
    set_signals,
)
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.shipping import ship

if TYPE_CHECKING:
    from dagster_dataops.checkpoints.spans import Span

_GRACE_SECONDS: Final = 1.0
_TASKS: Final = Path("/proc/self/task")
_BOOT: Final = (
    "import sys, json; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from dagster_dataops.execution.worker import main; main(a['connection'], a['lifeline'])"
)


class Worker:
    """One worker process, seen from its parent.

    Attributes:
        connection: The parent's end of the pipe.
        segment: Number of its segment.
        ready: Whether it has said that it is ready.
        ranges: What it was given and has not finished, in order.
        held: What it has finished and not settled: ranges with their spans, by their start.
        places: Where it was told to put the output of some of these.
        settled_to: Up to which byte the first of these is settled.
    """

    def __init__(self, pid: int, connection: "Connection[bytes, bytes]", segment: int) -> None:
        self.pid = pid
        self.connection = connection
        self.segment = segment
        self.ready = False
        self.ranges: deque[Range] = deque()
        self.held: dict[int, tuple[Range, list[Span]]] = {}
        self.places: dict[int, int] = {}
        self.settled_to = 0
        self.status: int | None = None

    def poll(self) -> bool:
        """Whether the process has ended; its status is then known."""
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else reaped it
                pid, status = self.pid, 0
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it came."""
        until = time.monotonic() + seconds
        while not self.poll():
            if time.monotonic() >= until:
                return False
            time.sleep(0.002)
        return True

    def signal(self, number: int) -> None:
        """Send a signal, if the process is still there."""
        if not self.poll():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    @property
    def cause_of_death(self) -> str:
        """How the process ended, in words."""
        status = self.status or 0
        if status < 0:
            known = -status in set(signal.Signals)
            return f"killed by {signal.Signals(-status).name if known else f'signal {-status}'}"
        return f"exit status {status}"


class WorkerPool:
    """The worker processes of one run.

    Args:
        operator: What they run.
        unshared: Descriptors that forked workers must not keep, such as the folder's lock.
    """

    def __init__(self, operator: Operator, unshared: tuple[int, ...]) -> None:
        self._operator = operator
        self._unshared = unshared
        self._payload: bytes | None = None
        self._lifeline_reader, self._lifeline_writer = os.pipe()
        self.workers: list[Worker] = []
        self._poll = select.poll()
        self._by_descriptor: dict[int, Worker] = {}

    def start(self, assignment: Assignment) -> Worker:
        """Start one worker."""
        mine, theirs = Pipe()
        if may_fork():
            pid = self._fork(assignment, mine, theirs)
        else:
            pid = self._spawn(assignment, mine, theirs)
        theirs.close()
        worker = Worker(pid, mine, assignment.segment)
        self.workers.append(worker)
        self._by_descriptor[mine.fileno()] = worker
        self._poll.register(mine.fileno(), select.POLLIN)
        return worker

    def talking(self, seconds: float) -> list[Worker]:
        """Wait up to ``seconds`` for workers that have said something, or have ended."""
        return [self._by_descriptor[number] for number, _ in self._poll.poll(seconds * 1000)]

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
                worker.connection.close()
            for descriptor in self._unshared:
                os.close(descriptor)
            serve(theirs, assignment, self._operator, termination)
        except BaseException:  # noqa: BLE001 - nothing may reach the parent's code above us
            sys.excepthook(*sys.exc_info())
            os._exit(70)
        end()

    def _spawn(
        self,
        assignment: Assignment,
        mine: "Connection[bytes, bytes]",
        theirs: "Connection[bytes, bytes]",
    ) -> int:
        if self._payload is None:
            self._payload = ship(self._operator)
        passed = (theirs.fileno(), self._lifeline_reader)
        boot = {"path": sys.path, "connection": passed[0], "lifeline": passed[1]}
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", _BOOT, orjson.dumps(boot).decode()],
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
        )
        process.returncode = 0  # we reap it ourselves, by its pid
        mine.send_bytes(orjson.dumps(asdict(assignment)))
        mine.send_bytes(self._payload)
        return process.pid

    def discard(self, worker: Worker) -> None:
        """Forget a worker that has ended."""
        worker.wait(_GRACE_SECONDS)
        worker.signal(signal.SIGKILL)
        worker.wait(_GRACE_SECONDS)
        self._poll.unregister(worker.connection.fileno())
        worker.connection.close()
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
        until = time.monotonic() + seconds
        for worker in self.workers:
            if not worker.wait(max(0.0, until - time.monotonic())):
                worker.signal(signal.SIGKILL)
                worker.wait(_GRACE_SECONDS)
            worker.connection.close()
        self.workers.clear()
        os.close(self._lifeline_writer)
        os.close(self._lifeline_reader)


def may_fork() -> bool:
    """Whether this process can be forked safely: Linux, no thread but one that syncs files."""
    if sys.platform != "linux" or threading.active_count() > 2:
        return False
    try:
        threads = {int(task.name) for task in _TASKS.iterdir()}
    except OSError:
        return False
    return threads <= {threading.get_native_id(), background.native_id}
