"""WorkerProcess: the parent's side of a worker process."""

import math
import os
import select
import signal
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dagster_dataops.execution.workers.heartbeat import Heartbeat
from dagster_dataops.execution.workers.protocol import Kind

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from dagster_dataops.checkpoints.journal.span import Span
    from dagster_dataops.execution.workers.fork_server import ServedProcess
    from dagster_dataops.execution.workers.protocol import Range


_NONE: Final = -1
_open: "Final[set[WorkerProcess]]" = set()


class Overdue(NamedTuple):
    """A record that exceeds its time limit: its byte position, and the time to kill its worker."""

    offset: int
    kill_at: float


class WorkerProcess:
    """One worker process, in its parent.

    Args:
        pid: Its process id.
        connection: The parent's end of the pipe.
        segment: As the attribute.
        heartbeat: As the attribute.
        served: The process, if the fork server forked it.
        parent_pipe: The writing end of a pipe; the worker ends when it closes; -1 for none.
        circumstances: The environment in which it was started, if it can serve several runs.

    Attributes:
        segment: Number of its segment in the current run.
        begun_at: When it was given that run; a monotonic time.
        ready: Whether it has reported that it is ready.
        ready_at: Monotonic time at which it reported this.
        fresh: Whether this is its first run.
        behind: Number of earlier runs whose end it has not reported. Its messages are ignored
            until then.
        ranges: The unfinished ranges of the worker, in order.
        late: Whether the first of these takes too long. It gets no other range meanwhile.
        receiving: Whether a message is being read. If that is interrupted, the pipe still holds the
            rest of the message, and no later message can be read.
        heartbeat: Shared memory with its current record, if there is a time limit.
        gpus: Its `CUDA_VISIBLE_DEVICES`, if the workers divide the GPUs.
        overdue: The record for which it was terminated.
        unfit: Why it ends itself; empty if it does not.
        leaving: Whether it ends, and begins none of its ranges.
        journaled_to: The byte up to which the first range is settled.
    """

    def __init__(  # noqa: PLR0913 - made in few places
        self,
        pid: int,
        connection: "Connection[bytes, bytes]",
        segment: int,
        heartbeat: Heartbeat | None = None,
        served: "ServedProcess | None" = None,
        *,
        parent_pipe: int = _NONE,
        circumstances: object = None,
    ) -> None:
        self.pid = pid
        self._served = served
        self._parent_pipe = parent_pipe
        self.connection = connection
        self.circumstances = circumstances
        self.receiving = False
        self.fresh = True
        self.behind = 0
        self.status: int | None = None
        self.heartbeat: Heartbeat | None = None
        self.gpus = ""
        self.begin(segment, heartbeat)
        try:
            self._pidfd = os.pidfd_open(pid) if served is None else served.pidfd
        except (AttributeError, OSError):  # only the end of the pipe shows its end
            self._pidfd = -1
        self._ended = select.poll()  # `select.select` takes no descriptor above 1,023
        if self._pidfd >= 0:
            self._ended.register(self._pidfd, select.POLLIN)
        _open.add(self)

    def begin(self, segment: int, heartbeat: Heartbeat | None) -> None:
        """Reset the state of the last run and begin a run with this segment."""
        if self.heartbeat is not None:
            self.heartbeat.close()
        self.segment = segment
        self.heartbeat = heartbeat
        self.begun_at = time.monotonic()
        self.ready = False
        self.ready_at = math.inf
        self.ranges: deque[Range] = deque()
        self.late = False
        self.overdue: Overdue | None = None
        self.unfit = ""
        self.leaving = False
        self.journaled_to = 0
        self._busy_before = 0.0

    def mark_ready(self) -> None:
        """Record that the worker is ready."""
        self.ready = True
        self.ready_at = time.monotonic()
        self._busy_before = self._busy_seconds()

    @property
    def demand(self) -> float:
        """The share of a core that it has needed since it was ready, waiting for a core included.

        About 1 for an operator that computes, 0 for one that waits; 0 if unknown.
        """
        seconds = time.monotonic() - self.ready_at
        return (self._busy_seconds() - self._busy_before) / seconds if seconds > 0 else 0.0

    def _busy_seconds(self) -> float:
        """Return the seconds that its main thread has run or waited for a core."""
        try:
            ran, waited, _ = Path(f"/proc/{self.pid}/schedstat").read_text("ascii").split()
        except (OSError, ValueError):
            return 0.0
        return (int(ran) + int(waited)) / 1e9

    @property
    def descriptors(self) -> list[int]:
        """Descriptors that become readable when it sends a message or ends."""
        return [number for number in (self.connection.fileno(), self._pidfd) if number >= 0]

    def receive(self) -> bytes:
        """Return its next message.

        Raises:
            OSError: It has ended; likewise `EOFError`.
        """
        self.receiving = True
        message = self.connection.recv_bytes()
        self.receiving = False
        return message

    def take_note(self, span: "Span") -> None:
        """Record that a span is settled: it is not processed again if the worker dies."""
        self.journaled_to = span.start + span.length

    def poll(self) -> bool:
        """Return whether the process has ended; then `status` is set."""
        if self.status is None:
            self.status = self._reaped() if self._served is None else self._served.poll()
        return self.status is not None

    def _reaped(self) -> int | None:
        """Return the status of a child process if it has ended."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # other code has read its status
            return 0
        return os.waitstatus_to_exitcode(status) if pid else None

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the end of the process; return whether it has ended."""
        until = time.monotonic() + seconds
        while not self.poll():
            left = until - time.monotonic()
            if left <= 0:
                return False
            if self._pidfd < 0:
                time.sleep(0.002)
            else:
                self._ended.poll(1000 * left)
        return True

    def signal(self, number: int) -> None:
        """Send a signal, if the process still runs."""
        if not self.poll():
            with suppress(ProcessLookupError):
                if self._served is None:
                    os.kill(self.pid, number)
                else:  # its id may be reused once the server has reaped it
                    signal.pidfd_send_signal(self._pidfd, number)

    def becomes_idle(self, seconds: float) -> bool:
        """Return whether it reports within ``seconds`` that it is idle."""
        until = time.monotonic() + seconds
        try:
            while self.connection.poll(max(0.0, until - time.monotonic())):
                if self.receive()[0] == Kind.IDLE:
                    return True
        except (EOFError, OSError):
            pass
        return False

    def end(self, seconds: float) -> None:
        """Kill it and wait up to ``seconds`` for its end."""
        self.signal(signal.SIGKILL)
        self.wait(seconds)
        self.close()

    def close(self) -> None:
        """Close all descriptors of the process, which then ends."""
        if self not in _open:
            return
        _open.discard(self)
        self.connection.close()
        if self._parent_pipe >= 0:
            os.close(self._parent_pipe)
        if self._pidfd >= 0:
            os.close(self._pidfd)
        if self._served is not None:
            self._served.close()
        if self.heartbeat is not None:
            self.heartbeat.close()

    @property
    def cause_of_death(self) -> str:
        """The cause of the end of the process, in words."""
        status = self.status or 0
        if self.unfit:
            return self.unfit
        if status < 0:
            known = -status in set(signal.Signals)
            return f"killed by {signal.Signals(-status).name if known else f'signal {-status}'}"
        return f"exit status {status}"


def close_all() -> None:
    """Close the descriptors of all workers in a forked child, so that they end with its parent."""
    for worker in list(_open):
        worker.close()
