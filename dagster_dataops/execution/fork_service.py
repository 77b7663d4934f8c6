"""The process that workers are forked from where their parent has threads, seen from inside.

It has one thread, has imported the engine and nothing of users, forks ahead of what is asked for
and says how the forked processes end. It writes nothing, and ends as soon as its parent does.
"""

import gc
import importlib
import os
import select
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

import orjson

from dagster_dataops.execution.rehearsal import Rehearsal
from dagster_dataops.execution.spare import REQUEST_BYTES, Spare

_MOST_DESCRIPTORS: Final = 6  # connection, lifeline, status, standard output and error, heartbeat
_NOBODY: Final = -1
_QUIET_MS: Final = 30  # without a request; a worker that was just asked for has the cores first


def main(channel: int, modules: Sequence[str]) -> NoReturn:
    """Serve until the parent closes its end of the channel.

    Args:
        channel: A socket on which each message is a request: the environment that a worker is to
            have, and its descriptors.
        modules: Of the engine, imported beforehand so that no worker has to.
    """
    for name in modules:
        with suppress(ImportError):  # a worker that needs it says so better
            importlib.import_module(name)
    _hush()
    gc.collect()
    gc.freeze()  # no worker copies what lies here only for having looked whether it is garbage
    _Service(socket.socket(fileno=channel)).serve()
    os._exit(0)


def _hush() -> None:
    """Let go of the parent's standard output and error: who reads them waits for their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(null, standard)
    os.close(null)


class _Service:
    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)
        self._forked: dict[int, tuple[int, int]] = {}  # pidfd: (pid, where to say how it ended)
        self._spare: Spare | None = None
        self._due = False  # whether there should be one
        self._rehearsal = Rehearsal()

    def serve(self) -> None:
        """Answer requests, with a spare at hand for the next one."""
        while True:
            heard = self._poll.poll(_QUIET_MS if self._due else None)
            if not heard:
                self._due = False  # once a request: should it die, or there be none, so be it
                with suppress(OSError):
                    self._spare = self._spare or self._forked_off(self._rehearsal)
            for descriptor, _ in heard:
                if descriptor != self._channel.fileno():
                    self._reap(descriptor)
                elif not self._answer():
                    self._end()
                    return

    def _answer(self) -> bool:
        """Do what is asked; return whether there is anybody to ask."""
        request, descriptors, _, _ = socket.recv_fds(
            self._channel, REQUEST_BYTES, _MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        if not request:
            return False
        self._due = True
        try:
            self._fork(request, descriptors)
        except OSError as error:
            self._channel.send(orjson.dumps({"errno": error.errno}))
        finally:
            for descriptor in descriptors:
                with suppress(OSError):
                    os.close(descriptor)
        return True

    def _fork(self, environment: bytes, descriptors: list[int]) -> None:
        connection, lifeline, status, *shown = descriptors
        given = [connection, lifeline, *shown]
        try:
            pidfd = self._become(environment, given, descriptors)
        except ConnectionError:  # the spare has been killed
            pidfd = self._become(environment, given, descriptors)
        pid, _ = self._forked[pidfd]
        self._forked[pidfd] = (pid, os.dup(status))
        socket.send_fds(self._channel, [orjson.dumps({"pid": pid})], [pidfd])

    def _become(self, environment: bytes, given: list[int], open_now: list[int]) -> int:
        """Make the spare a worker, and return what names it."""
        spare, self._spare = self._spare or self._forked_off(None, open_now), None
        spare.become(environment, given)
        return spare.pidfd

    def _forked_off(self, rehearsal: Rehearsal | None, open_now: Sequence[int] = ()) -> Spare:
        others = [each for pidfd, (_, told) in self._forked.items() for each in (pidfd, told)]
        unshared = [self._channel.fileno(), *others, *open_now]
        spare = Spare([each for each in unshared if each != _NOBODY], rehearsal)
        self._forked[spare.pidfd] = (spare.pid, _NOBODY)
        self._poll.register(spare.pidfd, select.POLLIN)
        return spare

    def _reap(self, pidfd: int) -> None:
        if self._spare is not None and self._spare.pidfd == pidfd:
            self._spare.close()
            self._spare = None
        pid, told = self._forked.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, ended = os.waitpid(pid, 0)
        if told != _NOBODY:
            with suppress(OSError):  # nobody cares any more
                os.write(told, str(os.waitstatus_to_exitcode(ended)).encode())
            os.close(told)

    def _end(self) -> None:
        """Leave no spare behind."""
        if self._spare is not None:
            self._spare.close()
            os.waitpid(self._spare.pid, 0)
