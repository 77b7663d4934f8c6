"""The code of the fork server's process.

It has one thread, imports the engine and no user code, and reports the exit status of the forked
processes. It prints nothing and ends with its parent.
"""

import gc
import importlib
import os
import select
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

import orjson

from dagster_dataops.execution.workers import worker_main

_REQUEST_BYTES: Final = 1 << 20  # bytes; five times the largest environment with its message
_MOST_DESCRIPTORS: Final = 3  # connection, lifeline, status


def main(channel: int, modules: Sequence[str]) -> NoReturn:
    """Serve until the parent closes its end of the channel.

    Args:
        channel: Descriptor of a socket. Each message is a request with the environment and the
            descriptors of a new worker.
        modules: Modules of the engine to import before the first fork.
    """
    for name in modules:
        with suppress(ImportError):  # a worker that needs the module reports the error
            importlib.import_module(name)
    _hush()
    gc.collect()
    gc.freeze()  # garbage collection in workers then copies none of this memory
    _Service(socket.socket(fileno=channel)).serve()
    os._exit(0)


def _hush() -> None:
    """Close the parent's standard output and error: their readers wait until all writers end."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(null, standard)
    os.close(null)


class _Service:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)
        self._forked: dict[
            int, tuple[int, int]
        ] = {}  # pidfd: (pid, descriptor for the exit status)

    def serve(self) -> None:
        """Answer requests until the parent has ended."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor != self._channel.fileno():
                    self._reap(descriptor)
                elif not self._answer():
                    return

    def _answer(self) -> bool:
        """Answer one request; return ``False`` if the parent has ended."""
        request, descriptors, _, _ = socket.recv_fds(
            self._channel, _REQUEST_BYTES, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not request:
            return False
        try:
            self._fork(request, *descriptors)
        except OSError as error:
            self._channel.send(orjson.dumps({"errno": error.errno}))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork(self, environment: bytes, connection: int, lifeline: int, status: int) -> None:
        pid = os.fork()
        if not pid:
            self._live_as_worker(environment, connection, lifeline, status)
        pidfd = os.pidfd_open(pid)
        self._forked[pidfd] = (pid, os.dup(status))
        self._poll.register(pidfd, select.POLLIN)
        socket.send_fds(self._channel, [orjson.dumps({"pid": pid})], [pidfd])

    def _live_as_worker(
        self, environment: bytes, connection: int, lifeline: int, status: int
    ) -> NoReturn:
        try:
            others = [each for pidfd, (_, told) in self._forked.items() for each in (pidfd, told)]
            for descriptor in (self._channel.fileno(), status, *others):
                os.close(descriptor)
            _take_environment(environment)
            worker_main.main(connection, lifeline)
        except BaseException:  # noqa: BLE001 - nothing may reach the code above, no worker's
            sys.excepthook(*sys.exc_info())
        os._exit(70)

    def _reap(self, pidfd: int) -> None:
        pid, told = self._forked.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, ended = os.waitpid(pid, 0)
        with suppress(OSError):  # the parent has ended
            os.write(told, str(os.waitstatus_to_exitcode(ended)).encode())
        os.close(told)


def _take_environment(given: bytes) -> None:
    variables = (variable.partition(b"=") for variable in given.split(b"\0") if variable)
    os.environb.clear()
    os.environb.update({name: value for name, _, value in variables})
