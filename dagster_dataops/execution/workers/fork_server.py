"""ForkServer: a small process that forks workers for a parent that has threads.

Forking such a parent can deadlock the child, and a new interpreter costs 0.15 s of a core for each
worker. The server is an interpreter that has imported the engine. It runs from the first worker
until the parent ends. It imports no user code, so that every worker imports the current version of
the user's modules.

``multiprocessing.forkserver`` is not suitable. A process has only one, which may have preloaded
Dagster for other code. It runs the parent's ``__main__`` in every child, and leaves a resource
tracker process behind.
"""

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Final

import orjson

from dagster_dataops.execution.workers.process_environment import (
    environment,
    start_interpreter,
    surroundings,
)

_BOOT: Final = (
    "from dagster_dataops.execution.workers.fork_server_main import main; "
    "main(given['channel'], given['modules'])"
)
_PATIENCE_SECONDS: Final = 30.0  # seconds for an answer; the first includes the start
_PARTING_SECONDS: Final = 0.5
_LAST_MESSAGE_MS: Final = 1000
_REPLY_BYTES: Final = 256
_PACKAGE: Final = __name__.partition(".")[0]
# They may import Dagster, formats or PyTorch.
_NOT_LEAN: Final = ("__main__", "assets", "checks", "readers", "streams")


class ServedProcess:
    """A process that the server forked.

    Args:
        pid: Its process id.
        pidfd: Refers to it even after its id is reused.
        status: Descriptor from which its exit status is read.
    """

    def __init__(self, pid: int, pidfd: int, status: int) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self._status = status

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; ``None`` while the process runs.

        If the server was killed, the code is that of SIGKILL.
        """
        if not _readable(self.pidfd, 0):
            return None
        code = os.read(self._status, 16) if _readable(self._status, _LAST_MESSAGE_MS) else b""
        return int(code) if code else -signal.SIGKILL

    def close(self) -> None:
        """Close its descriptors."""
        os.close(self._status)


class ForkServer:
    """The parent's side of the server, which starts at once. It ends with `close` or its parent."""

    def __init__(self) -> None:
        self.surroundings = surroundings()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(_PATIENCE_SECONDS)
        with theirs:
            channel = theirs.fileno()
            self._process = start_interpreter(_BOOT, [channel], channel=channel, modules=_engine())

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    def fork(self, connection: int, parent_pipe: int) -> ServedProcess:
        """Return a new worker process that receives these descriptors.

        Args:
            connection: The worker's end.
            parent_pipe: The pipe whose closing ends the worker.

        Raises:
            EOFError: The server has ended.
            OSError: The server cannot fork, does not answer, or has ended.
        """
        status, write_status = os.pipe()
        try:
            socket.send_fds(self._channel, [environment()], [connection, parent_pipe, write_status])
            pid, pidfd = self._answer()
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(write_status)
        return ServedProcess(pid, pidfd, status)

    def _answer(self) -> tuple[int, int]:
        reply, descriptors, _, _ = socket.recv_fds(
            self._channel, _REPLY_BYTES, 1, socket.MSG_CMSG_CLOEXEC
        )
        if not reply:
            raise EOFError
        answer: dict[str, Any] = orjson.loads(reply)
        if "pid" not in answer:
            raise _CannotForkError(answer["errno"], os.strerror(answer["errno"]))
        return answer["pid"], descriptors[0]

    def close(self) -> None:
        """End the server; its workers keep running."""
        self._channel.close()  # closing the channel ends the server
        try:
            self._process.wait(_PARTING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Close the channel in a forked child, because the server belongs to the parent."""
        self._channel.close()
        self._process.returncode = 0  # avoids a warning: the server is not a child of this process


class _CannotForkError(OSError):
    """The server runs, but the system refuses to fork."""


class _Kept:
    """The server of this process, if it has one."""

    def __init__(self) -> None:
        self.server: ForkServer | None = None
        self.lock = threading.Lock()

    def forget(self) -> None:
        """Start without a server in a forked child, because the server belongs to the parent."""
        server, self.server = self.server, None
        self.lock = threading.Lock()
        if server is not None:
            server.forget()


_kept: Final = _Kept()


def available() -> bool:
    """Return whether this system supports the server: it needs Linux's process descriptors."""
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


def running() -> bool:
    """Return whether the server runs, so that a worker can be forked at once."""
    return _kept.server is not None


def server_pid() -> int | None:
    """Return the process id of the server; ``None`` if there is none."""
    server = _kept.server
    return None if server is None else server.pid


def forked(connection: int, parent_pipe: int) -> ServedProcess | None:
    """Return a process that the server has forked; arguments as for `ForkServer.fork`.

    A server is started if there is none, or if the environment has changed since it was started.

    Returns:
        The process; ``None`` if the server died or does not answer. It may have forked a worker
        anyway, so do not use the descriptors again. The next call starts another server.

    Raises:
        OSError: The system refuses another process.
    """
    with _kept.lock:
        try:
            return _server().fork(connection, parent_pipe)
        except _CannotForkError:
            raise
        except (EOFError, OSError):
            _end_server()
            return None


def _server() -> ForkServer:
    if _kept.server is not None and _kept.server.surroundings != surroundings():
        _end_server()
    if _kept.server is None:
        _kept.server = ForkServer()
    return _kept.server


def _end_server() -> None:
    server, _kept.server = _kept.server, None
    if server is not None:
        server.close()


def _engine() -> list[str]:
    """Return the loaded modules of this package, without those that import large libraries."""
    names = (name.split(".") for name in list(sys.modules) if name.startswith(f"{_PACKAGE}."))
    return sorted(".".join(parts) for parts in names if parts[1] not in _NOT_LEAN)


def _readable(descriptor: int, milliseconds: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(milliseconds))


os.register_at_fork(after_in_child=_kept.forget)
atexit.register(_end_server)
