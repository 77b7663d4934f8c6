"""Start worker processes: by forking where that is safe, else as new interpreters.

A new interpreter does not import the main module of the program, so programs need no guard.
Definitions of the main module are sent by value.
"""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final

from dagster_dataops.errors import StreamWorkerError
from dagster_dataops.foundation.concurrency.sent_code import pickled
from dagster_dataops.streams.sharding.shard_worker import serve
from dagster_dataops.streams.sharding.tasks import Start, StreamJob

_COMMAND: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from dagster_dataops.streams.sharding.shard_worker import main; main({requests}, {results})"
)


class ShardProcess:
    """One worker process, and the connections to it.

    Args:
        start: Where it starts.
        forked: Whether to fork this process.
        inherited: Connections of this process that a fork must close.

    Attributes:
        requests: The connection to send tasks.
        results: The connection to receive outcomes.
    """

    def __init__(self, start: Start, *, forked: bool, inherited: Sequence[Connection]) -> None:
        requests, self.requests = Pipe(duplex=False)
        self.results, results = Pipe(duplex=False)
        ends = (requests, results)
        try:
            if forked:
                self._process = _forked(start, ends, [*inherited, self.requests, self.results])
                self.sentinel: int = self._process.sentinel
            else:
                self._process = _executed(ends)
                self.sentinel = _sentinel(self._process.pid)
        finally:
            requests.close()
            results.close()
        self._forked = forked
        if not forked:
            with suppress(OSError):  # it has died already
                self.requests.send_bytes(pickled(start))

    def stop(self) -> int:
        """Kill the process, also one that was suspended, and return its exit code."""
        self._process.kill()
        if self._forked:
            self._process.join()
            code = self._process.exitcode
        else:
            code = self._process.wait()
            if self.sentinel >= 0:
                os.close(self.sentinel)
                self.sentinel = -1
        self.requests.close()
        self.results.close()
        return int(code)


def _forked(start: Start, ends: tuple[Any, Any], inherited: Sequence[Connection]) -> Any:
    context: Any = multiprocessing.get_context("fork")
    arguments = (start, ends, inherited)
    process = context.Process(target=serve, args=arguments, name="stream-worker", daemon=True)
    process.start()
    return process


def _executed(ends: tuple[Any, Any]) -> Any:
    numbers = [end.fileno() for end in ends]
    command = _COMMAND.format(path=sys.path, requests=numbers[0], results=numbers[1])
    return subprocess.Popen([sys.executable, "-c", command], pass_fds=numbers)  # noqa: S603 - fixed


def _sentinel(pid: int) -> int:
    """Return a descriptor that is ready once the process has ended; -1 if there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def check_sendable(job: StreamJob) -> None:
    """Check that a new interpreter can receive the stages."""
    for stage in job.chain.ordered():
        for name, value in stage.options().items():
            try:
                pickled(value)
            except Exception as error:
                kind = type(error).__name__
                reason = (
                    f"its {name} cannot be sent to a worker process: {kind}: {error}. Open locks, "
                    "files and connections inside the function, not outside"
                )
                raise StreamWorkerError(stage.name, reason) from error
