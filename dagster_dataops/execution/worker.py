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
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import orjson

from dagster_dataops.checkpoints.outputs import Settled
from dagster_dataops.checkpoints.segments import SegmentWriter
from dagster_dataops.errors import DataOpsError
from dagster_dataops.execution import messages
from dagster_dataops.execution.holding import HeldRange, Holding
from dagster_dataops.execution.messages import STOP, Kind, Mode, Place, Range
from dagster_dataops.execution.settling import Settle, Stretch, settling
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
        main_segment: Number of the segment that all workers write to.
        ignore_errors: Whether a failing record ends the run.
        check_input: Whether spans carry a checksum of their input.
    """

    input: str
    stamp: tuple[int, ...]
    folder: str
    segment: int
    main_segment: int
    ignore_errors: bool
    check_input: bool


class Termination:
    """SIGTERM as an exception, raised only where it does no harm.

    That is inside this object's ``with`` blocks: in the operator, and while waiting for orders.
    Elsewhere it waits for the next block.
    """

    def __init__(self) -> None:
        self._welcome = False
        self._requested = False

    def request(self, _number: int, _frame: FrameType | None) -> None:
        """Handle the signal."""
        self._requested = True
        if self._welcome:
            raise Terminated

    def __enter__(self) -> None:
        self._welcome = True
        if self._requested:
            raise Terminated

    def __exit__(self, *_: object) -> None:
        self._welcome = False

    def during(self, settle: Settle) -> Settle:
        """Return ``settle``, within a block of this."""

        def interruptible(lines: Iterator[bytes], output: bytearray, until: float) -> Stretch:
            with self:
                return settle(lines, output, until)

        return interruptible


def serve(
    connection: "Connection[bytes, bytes]",
    assignment: Assignment,
    operator: Operator,
    termination: Termination,
) -> None:
    """Work until told to stop, terminated, or left alone."""
    with (
        suppress(Terminated, EOFError, ConnectionError),
        settling(operator, (Terminated,)) as settle,
    ):
        try:
            worker = _Worker(connection, assignment, operator, settle, termination)
        except (OSError, DataOpsError) as error:
            connection.send_bytes(messages.pack_fault(str(error)))
            return
        connection.send_bytes(bytes([Kind.READY]))
        worker.run()


class _Worker:
    def __init__(
        self,
        connection: "Connection[bytes, bytes]",
        assignment: Assignment,
        operator: Operator,
        settle: Settle,
        termination: Termination,
    ) -> None:
        self._connection = connection
        self._termination = termination
        self._orders: deque[bytes] = deque()
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        folder = Path(assignment.folder)
        self._segment = SegmentWriter(folder, assignment.segment)
        self._main = SegmentWriter(folder, assignment.main_segment, shared=True)
        self._holding = Holding(self._spill)
        self._current: HeldRange | None = None
        self._loop = SpanLoop(
            termination.during(settle),
            _opened(assignment),
            self._take,
            operator=operator.__dataops__.spec.qualified_name,
            ignore_errors=assignment.ignore_errors,
            check_input=assignment.check_input,
        )

    def run(self) -> None:
        """Do what is ordered; whatever ends it leaves what was finished settled."""
        try:
            try:
                self._obey()
            finally:
                self._holding.spill_all()
        except DataOpsError as error:  # the disk
            self._connection.send_bytes(messages.pack_fault(str(error)))

    def _obey(self) -> None:
        while (message := self._next_order()) != STOP:
            order = messages.unpack_order(message)
            if isinstance(order, Place):
                self._place(order)
            elif not self._work(order):
                return

    def _next_order(self) -> bytes:
        if self._orders:
            return self._orders.popleft()
        with self._termination:
            while self._holding and not self._poll.poll(1000 * self._holding.patience + 1):
                self._holding.spill_overdue()
            return self._connection.recv_bytes()

    def _work(self, given: Range) -> bool:
        """Settle or hold one range; return whether to go on."""
        began = time.monotonic()
        self._current = held = None
        if given.mode is Mode.QUICK:
            self._current = held = self._holding.begin(given.start)
        one_by_one = given.mode in (Mode.CAREFUL, Mode.ALONE)
        failed = self._loop.run(given.start, given.end, one_by_one=one_by_one)
        if failed is not None:
            self._holding.spill_all()
            self._connection.send_bytes(messages.pack_failed(failed))
            return False
        seconds = time.monotonic() - began
        if held is not None and self._holding.holds(held):
            held.seconds = seconds
            spans = [settled.span for settled in held.settled]
            self._connection.send_bytes(messages.pack_held(given.start, seconds, spans))
        else:
            self._connection.send_bytes(messages.pack_done(given.start, seconds))
        return True

    def _take(self, settled: Settled) -> None:
        """Hold a finished span or settle it, and do what cannot wait for the range's end."""
        held = self._current
        if held is not None and self._holding.holds(held):
            held.settled.append(settled)
            if settled.errors:  # these have no place in the result
                self._holding.spill(held.start)
        else:
            self._settle(settled)
        while self._poll.poll(0):
            message = self._connection.recv_bytes()
            order = messages.unpack_order(message) if message != STOP else None
            if isinstance(order, Place):
                self._place(order)
            else:
                self._orders.append(message)
        self._holding.spill_overdue()

    def _settle(self, settled: Settled) -> None:
        offset = self._segment.append(settled.output, settled.errors)
        self._connection.send_bytes(messages.pack_span(offset, settled.span))

    def _spill(self, held: HeldRange) -> None:
        for settled in held.settled:
            self._settle(settled)
        if held.seconds is not None:
            self._connection.send_bytes(messages.pack_done(held.start, held.seconds))

    def _place(self, place: Place) -> None:
        held = self._holding.take(place.start)
        if held is not None:
            self._main.write_at(place.offset, *[settled.output for settled in held.settled])
            self._connection.send_bytes(messages.pack_placed(place.start))


def _opened(assignment: Assignment) -> int:
    descriptor = os.open(assignment.input, os.O_RDONLY | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if stamp != assignment.stamp:
        msg = f"input {assignment.input} changed while it was being processed"
        raise OSError(msg)
    return descriptor


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


def set_signals() -> Termination:
    """Leave Ctrl-C to the parent; on SIGTERM settle what is finished and end."""
    termination = Termination()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, termination.request)
    return termination


def end() -> NoReturn:
    """End the process at once, without the exit handlers of whoever was forked."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)


def main(connection_descriptor: int, lifeline: int) -> None:
    """Entry of a worker started as a fresh interpreter."""
    bind_to_lifeline(lifeline)
    termination = set_signals()
    connection: Connection[bytes, bytes] = Connection(connection_descriptor)
    fields = orjson.loads(connection.recv_bytes())
    fields["stamp"] = tuple(fields["stamp"])
    payload = connection.recv_bytes()
    try:
        operator = receive(payload)
    except BaseException as error:  # noqa: BLE001 - importing user code may raise anything
        import traceback

        text = "".join(traceback.format_exception(error))
        connection.send_bytes(
            messages.pack_fault(f"it cannot be loaded there:\n{text}", Kind.UNABLE)
        )
        end()
    serve(connection, Assignment(**fields), operator, termination)
    end()
