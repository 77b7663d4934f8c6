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
from dagster_dataops.execution.workers.standard_streams import leave_streams

_REQUEST_BYTES: Final = 1 << 20  # bytes; five times the largest environment with its message
_MOST_DESCRIPTORS: Final = 3  # connection, parent pipe, status


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
    leave_streams()
    gc.collect()
    gc.freeze()  # garbage collection in workers then copies none of this memory
    _Service(socket.socket(fileno=channel)).serve()
    os._exit(0)


class _Service:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)
        # By its pidfd: the id of a forked process, and the descriptor for its exit status.
        self._forked: dict[int, tuple[int, int]] = {}

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

    def _fork(self, environment: bytes, connection: int, parent_pipe: int, status: int) -> None:
        pid = os.fork()
        if not pid:
            self._run_as_worker(environment, connection, parent_pipe, status)
        pidfd = os.pidfd_open(pid)
        self._forked[pidfd] = (pid, os.dup(status))
        self._poll.register(pidfd, select.POLLIN)
        socket.send_fds(self._channel, [orjson.dumps({"pid": pid})], [pidfd])

    def _run_as_worker(
        self, environment: bytes, connection: int, parent_pipe: int, status: int
    ) -> NoReturn:
        try:
            for descriptor in (self._channel.fileno(), status):
                os.close(descriptor)
            for pidfd, (_, other_status) in self._forked.items():
                os.close(pidfd)
                os.close(other_status)
            _take_environment(environment)
            worker_main.main(connection, parent_pipe)
        except BaseException:  # noqa: BLE001 - nothing may reach the code above, no worker's
            sys.excepthook(*sys.exc_info())
        os._exit(70)

    def _reap(self, pidfd: int) -> None:
        pid, status = self._forked.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, ended = os.waitpid(pid, 0)
        with suppress(OSError):  # the parent has ended
            os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
        os.close(status)


def _take_environment(environment: bytes) -> None:
    variables = (variable.partition(b"=") for variable in environment.split(b"\0") if variable)
    os.environb.clear()
    os.environb.update({name: value for name, _, value in variables})
