"""A worker process: takes ranges, settles their lines into a segment of its own, reports spans.

It never imports Dagster. It ends with its parent: the parent holds the only writing end of a
"lifeline" pipe, and when that closes the kernel kills the worker, whatever it is doing.
"""

import fcntl
import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import orjson

from dagster_dataops.checkpoints.segments import SegmentWriter
from dagster_dataops.checkpoints.spans import Span
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution import messages
from dagster_dataops.execution.messages import STOP, Kind, Mode
from dagster_dataops.execution.settling import Settle, settling
from dagster_dataops.execution.spanning import SpanLoop
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.shipping import receive

_F_SETSIG: Final = getattr(fcntl, "F_SETSIG", None)  # Linux


class Terminated(BaseException):
    """SIGTERM: settle what is finished and leave."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker is told once.

    Attributes:
        input: The input file.
        stamp: Device, inode, size and time that the input must have.
        folder: The checkpoint's folder.
        segment: Number of the worker's own segment.
        ignore_errors: Whether a failing record ends the run.
        check_input: Whether spans carry a checksum of their input.
    """

    input: str
    stamp: tuple[int, ...]
    folder: str
    segment: int
    ignore_errors: bool
    check_input: bool


def serve(
    connection: "Connection[bytes, bytes]", assignment: Assignment, operator: Operator
) -> None:
    """Work until told to stop, terminated, or left alone."""
    with (
        suppress(Terminated, EOFError, ConnectionError),
        settling(operator, (Terminated,)) as settle,
    ):
        try:
            worker = _Worker(connection, assignment, settle, _name_of(operator))
        except (OSError, DataOpsError) as error:
            connection.send_bytes(messages.pack_fault(str(error)))
            return
        connection.send_bytes(bytes([Kind.READY]))
        while (message := connection.recv_bytes()) != STOP:
            if not worker.work(messages.unpack_range(message)):
                break


def _name_of(operator: Operator) -> str:
    return operator.__dataops__.spec.qualified_name


class _Worker:
    def __init__(
        self,
        connection: "Connection[bytes, bytes]",
        assignment: Assignment,
        settle: Settle,
        operator: str,
    ) -> None:
        self._connection = connection
        self._segment = SegmentWriter(Path(assignment.folder), assignment.segment)
        descriptor = os.open(assignment.input, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if stamp != assignment.stamp:
            msg = f"input {assignment.input} changed while it was being processed"
            raise OSError(msg)
        self._loop = SpanLoop(
            settle,
            descriptor,
            self._write,
            operator=operator,
            ignore_errors=assignment.ignore_errors,
            check_input=assignment.check_input,
        )

    def work(self, given: messages.Range) -> bool:
        """Settle one range; return whether to go on."""
        began = time.monotonic()
        try:
            one_by_one = given.mode is not Mode.NORMAL
            failed = self._loop.run(given.start, given.end, one_by_one=one_by_one)
        except DataOpsError as error:  # the disk
            self._connection.send_bytes(messages.pack_fault(str(error)))
            return False
        if failed is not None:
            self._connection.send_bytes(messages.pack_failed(failed))
            return False
        self._connection.send_bytes(messages.pack_done(time.monotonic() - began))
        return True

    def _write(self, span: Span, output: bytes) -> None:
        offset = self._segment.append(output)
        self._connection.send_bytes(messages.pack_span(offset, span))


def bind_to_lifeline(descriptor: int) -> None:
    """Have the kernel kill this process when the other end of ``descriptor`` closes."""
    bound = _signalled_by(descriptor)
    if select.select([descriptor], [], [], 0)[0]:  # it closed before we were bound
        os._exit(1)
    if not bound:
        import threading

        threading.Thread(target=_exit_at_end_of, args=(descriptor,), daemon=True).start()


def _signalled_by(descriptor: int) -> bool:
    """Have the kernel watch the pipe, which works even while C code holds the interpreter."""
    if _F_SETSIG is None:
        return False
    try:
        # Whom to signal belongs to the open file, which all workers share: open it anew.
        own = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(own, _F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(own, fcntl.F_GETFL)
    fcntl.fcntl(own, fcntl.F_SETFL, flags | os.O_ASYNC)
    return True


def _exit_at_end_of(descriptor: int) -> NoReturn:
    os.read(descriptor, 1)
    os._exit(1)


def set_signals() -> None:
    """Leave Ctrl-C to the parent; on SIGTERM settle what is finished and end."""

    def terminate(_number: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, terminate)


def end() -> NoReturn:
    """End the process at once, without the exit handlers of whoever was forked."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)


def main(connection_descriptor: int, lifeline: int) -> None:
    """Entry of a worker started as a fresh interpreter."""
    bind_to_lifeline(lifeline)
    set_signals()
    connection: Connection[bytes, bytes] = Connection(connection_descriptor)
    fields = orjson.loads(connection.recv_bytes())
    fields["stamp"] = tuple(fields["stamp"])
    payload = connection.recv_bytes()
    try:
        operator = receive(payload)
    except BaseException as error:  # noqa: BLE001 - importing user code may raise anything
        import traceback

        text = "".join(traceback.format_exception(error))
        connection.send_bytes(messages.pack_fault(f"it cannot be loaded there:\n{text}"))
        end()
    serve(connection, Assignment(**fields), operator)
    end()
