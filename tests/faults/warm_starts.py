"""Processes forked from an interpreter that has imported modules once, to start without imports.

A started process is otherwise like one of a new interpreter: it has one thread, its own session,
environment and ``__main__``, and no open file but its output. The interpreter runs nothing before
it forks. All processes of one interpreter have the same seed of hashes.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

_REQUEST_BYTES: Final = 1 << 20
_NUMBER_BYTES: Final = 8
_ROOT: Final = Path(__file__).parents[2]


class StartedProcess:
    """A process to be watched and killed in the manner of ``subprocess.Popen``.

    Attributes:
        returncode: How it ended, negative for a signal; ``None`` as long as this is not known.
    """

    def __init__(self, pid: int, ends: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ends = ends

    def poll(self) -> int | None:
        """Return how it ended; ``None`` while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return how it ended, once it has."""
        if self.returncode is None:
            poll = select.poll()
            poll.register(self._ends, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("a script", timeout or 0)
            self.returncode = _receive(self._ends)
            with self._ends:
                self._ends.shutdown(socket.SHUT_WR)
                self._ends.recv(1)  # returns when the zombie is gone
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for its end."""
        self.wait()


class WarmInterpreter:
    """Starts processes. It is no child of this process, and ends with it, however it ends."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            descriptor = theirs.fileno()
            subprocess.run(
                [sys.executable, __file__, str(descriptor), str(os.getpid()), *modules],
                stdin=subprocess.DEVNULL,
                env={**environment, "PYTHONPATH": str(_ROOT)},
                pass_fds=[descriptor],
                start_new_session=True,
                check=True,
            )

    def start(
        self,
        command: Sequence[str],
        output: int,
        *,
        folder: Path,
        environment: Mapping[str, str],
    ) -> StartedProcess:
        """Start what ``python`` runs with this command line."""
        order = {"command": command, "folder": str(folder), "environment": dict(environment)}
        ours, theirs = socket.socketpair()
        with theirs:
            request = json.dumps(order).encode()
            socket.send_fds(self._channel, [request], [output, theirs.fileno()])
        return StartedProcess(_receive(ours), ours)

    def end(self) -> None:
        """End the interpreter; its processes go on."""
        self._channel.close()


ENGINE: Final = (
    "asyncio",
    "dagster_dataops.data",
    "dagster_dataops.datasets.dataset",
    "dagster_dataops.execution.executor",
    "dagster_dataops.execution.workplaces.processes",
    "dagster_dataops.execution.workplaces.single",
    "dagster_dataops.execution.workplaces.threads",
    "dagster_dataops.execution.runners.record_runner",
    "dagster_dataops.execution.workers.worker_pool",
)


@cache
def warm_interpreter(*modules: str) -> WarmInterpreter:
    """Return the interpreter of this process that has imported the engine and these modules."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DATAOPS_")}
    return WarmInterpreter([*ENGINE, *modules], kept)


def _send(place: socket.socket, number: int) -> None:
    place.sendall(number.to_bytes(_NUMBER_BYTES, "little", signed=True))


def _receive(place: socket.socket) -> int:
    answer = place.recv(_NUMBER_BYTES)
    assert answer, "the warm interpreter has ended"
    return int.from_bytes(answer, "little", signed=True)


# ------------------------------------------------------------------------ in the interpreter


class _Service:
    """Forks once for each order.

    Args:
        channel: Where orders come from.
        parent: The pidfd of the process that gives them. Its death does not close the channel if a
            process that was forked from it holds the other end.
    """

    def __init__(self, channel: socket.socket, parent: int) -> None:
        self._channel, self._parent = channel, parent
        self._running: dict[int, tuple[int, socket.socket]] = {}  # by pidfd: id, socket
        self._zombies: dict[socket.socket, int] = {}

    def next_order(self) -> dict[str, Any] | None:
        """Return an order in each forked process, and ``None`` at the end."""
        while True:
            places = [self._parent, self._channel, *self._running, *self._zombies]
            for ready in select.select(places, [], [])[0]:
                if ready == self._parent:
                    return None
                if ready in self._running:
                    self._report_end(ready)
                elif ready in self._zombies:
                    os.waitpid(self._zombies.pop(ready), 0)
                    ready.close()
                else:
                    request, (*given,), _, _ = socket.recv_fds(self._channel, _REQUEST_BYTES, 2)
                    if not request or self._is_forked(*given):
                        return dict(json.loads(request)) if request else None

    def _is_forked(self, output: int, answers: int) -> bool:
        """Fork, and return whether this is the forked process."""
        client = socket.socket(fileno=answers)
        child = os.fork()
        if child:
            os.close(output)
            self._running[os.pidfd_open(child)] = child, client
        else:
            self._leave(output, client)
        return not child

    def _leave(self, output: int, client: socket.socket) -> None:
        """Begin a session, take the output, and close all that belongs to the interpreter."""
        os.setsid()
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        _send(client, os.getpid())
        others = (other for _, other in self._running.values())
        for place in (client, self._channel, *others, *self._zombies):
            place.close()
        for pidfd in (self._parent, *self._running):
            os.close(pidfd)

    def _report_end(self, pidfd: int) -> None:
        child, client = self._running.pop(pidfd)
        os.close(pidfd)
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        with suppress(BrokenPipeError):
            _send(client, ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status)
        self._zombies[client] = child


def _run(command: list[str], folder: str, environment: dict[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if command[0] == "-m":
        sys.path.insert(0, folder)
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        return
    script = Path(command[0])
    sys.path.insert(0, str(script.parent))
    sys.argv = command
    main = type(sys)("__main__")
    main.__file__ = str(script)
    sys.modules["__main__"] = main
    exec(compile(script.read_bytes(), str(script), "exec"), main.__dict__)  # noqa: S102


def _serve(channel: int, parent: int, modules: Sequence[str]) -> dict[str, Any] | None:
    watched = os.pidfd_open(parent)  # it waits for the end of this process
    if os.fork():
        return None
    del sys.path[0]  # the folder of this file
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "another thread could hold a lock"
    return _Service(socket.socket(fileno=channel), watched).next_order()


if __name__ == "__main__":
    _order = _serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    if _order is not None:
        _run(**_order)
