"""Spare: a process forked ahead of time, which becomes a worker as soon as it is told which.

Forking, and the memory that a forked process has to make its own, cost a few milliseconds each.
A spare has them behind it, so that a run which is done in a moment does not wait for them.
"""

import importlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from dagster_dataops.execution import worker
from dagster_dataops.execution.rehearsal import Rehearsal
from dagster_dataops.execution.surroundings import environment

REQUEST_BYTES: Final = 1 << 20  # five times what an environment with its message can have
_MOST_DESCRIPTORS: Final = 5  # connection, lifeline, standard output and error, heartbeat


class Spare:
    """A spare, seen from the process that forks it, whose only thread makes it.

    Args:
        unshared: Descriptors that are none of its business.
        rehearsal: What it does until it is told; without it, it is wanted now.

    Raises:
        OSError: The system refuses.
    """

    def __init__(self, unshared: Sequence[int], rehearsal: Rehearsal | None) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self.pid = os.fork()
            except OSError:
                self._channel.close()
                raise
            if not self.pid:
                self._channel.close()
                _live(theirs, unshared, rehearsal)
        self.pidfd = os.pidfd_open(self.pid)

    def become(self, environment: bytes, descriptors: Sequence[int]) -> None:
        """Make it a worker; it ends with its lifeline then.

        Args:
            environment: See `surroundings.environment`.
            descriptors: Connection, lifeline, standard output, standard error and, if it is to
                have one, heartbeat.

        Raises:
            OSError: It has ended.
        """
        socket.send_fds(self._channel, [environment], descriptors)
        self._channel.close()

    def close(self) -> None:
        """End it, if it is still a spare."""
        self._channel.close()


def _live(channel: socket.socket, unshared: Sequence[int], rehearsal: Rehearsal | None) -> NoReturn:
    try:
        for descriptor in unshared:
            os.close(descriptor)
        if rehearsal is not None:
            _take_environment(environment())
            importlib.invalidate_caches()
            rehearsal.play()
        given, descriptors, _, _ = socket.recv_fds(
            channel, REQUEST_BYTES, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        channel.close()
        if given:
            _work(given, descriptors)
    except BaseException:  # noqa: BLE001 - nothing may reach the code above, which is no worker's
        sys.excepthook(*sys.exc_info())
        os._exit(70)
    os._exit(0)


def _work(environment: bytes, descriptors: Sequence[int]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # none that came before is for the worker
        signal.signal(number, signal.SIG_IGN)
    connection, lifeline, *shown = descriptors
    _take_environment(environment)
    heartbeat = _take_standard(shown)
    importlib.invalidate_caches()  # files may have come since
    worker.main(connection, lifeline, heartbeat)


def _take_environment(given: bytes) -> None:
    variables = (variable.partition(b"=") for variable in given.split(b"\0") if variable)
    new = {name: value for name, _, value in variables}
    if new != dict(os.environb):
        os.environb.clear()
        os.environb.update(new)


def _take_standard(shown: list[int]) -> int:
    """Write where the parent writes now; return the heartbeat's descriptor, or -1."""
    for standard, descriptor in zip((1, 2), shown, strict=False):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    return shown[2] if len(shown) > 2 else -1
