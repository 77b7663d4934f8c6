"""A worker process: takes ranges, settles their lines, reports spans. It never imports Dagster."""

import os
import select
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import NoReturn

import orjson

from dagster_dataops.checkpoints.outputs import Settled
from dagster_dataops.checkpoints.segments import SegmentWriter
from dagster_dataops.errors import DataOpsError, StorageError
from dagster_dataops.execution import messages
from dagster_dataops.execution.alarms import Alarm
from dagster_dataops.execution.clones import Original
from dagster_dataops.execution.heartbeat import Heartbeat
from dagster_dataops.execution.holding import HeldRange, Holding
from dagster_dataops.execution.lifeline import bind_to_lifeline
from dagster_dataops.execution.limits import Forward
from dagster_dataops.execution.messages import STOP, Done, Kind, Mode, Place, Range
from dagster_dataops.execution.settling import Settle, settling
from dagster_dataops.execution.spanning import SpanLoop
from dagster_dataops.execution.termination import Terminated, Termination, set_signals
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.shipping import receive


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker is told once.

    Attributes:
        input: The input file.
        stamp: `FileState` that the input must have, the time of change left aside.
        folder: The checkpoint's folder.
        segment: Number of the worker's own segment.
        main_segment: Number of the segment that all workers write to.
        ignore_errors: Whether a failing record ends the run.
        check_input: Whether spans carry a checksum of their input.
        one_by_one: Whether every record is a span of its own.
        heartbeat: Descriptor of the memory in which it tells what it is at; -1 for none.
    """

    input: str
    stamp: tuple[int, ...]
    folder: str
    segment: int
    main_segment: int
    ignore_errors: bool
    check_input: bool
    one_by_one: bool = False
    heartbeat: int = -1


def serve(
    connection: "Connection[bytes, bytes]",
    assignment: Assignment,
    operator: Operator,
    termination: Termination,
) -> None:
    """Work until told to stop, terminated, or left alone."""
    with (
        suppress(Terminated, EOFError, ConnectionError),
        _settling(operator, assignment) as (settle, heartbeat),
    ):
        try:
            worker = _Worker(connection, assignment, operator, settle, termination, heartbeat)
        except (OSError, DataOpsError) as error:
            connection.send_bytes(messages.pack_fault(str(error)))
            return
        connection.send_bytes(bytes([Kind.READY]))
        worker.run()


@contextmanager
def _settling(
    operator: Operator, assignment: Assignment
) -> Iterator[tuple[Settle, Heartbeat | None]]:
    """Yield what settles lines, and what tells the parent which, where there is a time limit.

    An alarm ends calls that take too long. Code that holds the interpreter hears none: then the
    parent ends the worker.
    """
    seconds = operator.__dataops__.resolved.timeout
    if seconds is None or assignment.heartbeat < 0:
        with settling(operator, (Terminated,)) as settle:
            yield settle, None
        return
    heartbeat = Heartbeat(assignment.heartbeat)
    if operator.__dataops__.spec.asynchronous:  # these keep their time themselves
        with settling(operator, (Terminated,), around=heartbeat.around) as settle:
            yield settle, heartbeat
        return
    alarm = Alarm(seconds)

    def around(forward: Forward) -> Forward:
        return heartbeat.around(alarm.around(forward))

    with alarm.installed(), settling(operator, (Terminated,), around=around) as settle:
        yield settle, heartbeat


class _Worker:
    def __init__(
        self,
        connection: "Connection[bytes, bytes]",
        assignment: Assignment,
        operator: Operator,
        settle: Settle,
        termination: Termination,
        heartbeat: Heartbeat | None,
    ) -> None:
        self._original = Original()
        self._connection = connection
        self._termination = termination
        self._orders: deque[bytes] = deque()
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)
        self._folder = Path(assignment.folder)
        self._number = assignment.segment
        self._segment: SegmentWriter | None = None  # made when it is needed
        self._main = SegmentWriter(self._folder, assignment.main_segment, shared=True)
        self._holding = Holding(self._spill)
        self._current: HeldRange | None = None
        self._at: int | None = None  # where the next span of the range under way belongs
        self._one_by_one = assignment.one_by_one
        self._speaking = Lock()  # one message at a time
        self._loop = SpanLoop(
            termination.during(settle),
            _opened(assignment),
            self._take,
            operator=operator.__dataops__.spec.qualified_name,
            ignore_errors=assignment.ignore_errors,
            check_input=assignment.check_input,
            announce=heartbeat.announce if heartbeat else None,
            shortened=self._shorten,
        )

    def run(self) -> None:
        """Do what is ordered; whatever ends it leaves what was finished settled."""
        try:
            try:
                self._obey()
            finally:
                self._loop.close()
                self._holding.spill_all()
        except DataOpsError as error:  # the disk
            self._say(messages.pack_fault(str(error)))

    def _say(self, message: bytes) -> None:
        with self._speaking:
            self._connection.send_bytes(message)

    def _shorten(self, end: int) -> None:
        with suppress(OSError):  # nobody is left to hear it
            self._say(messages.pack_shortened(end))

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
        while True:
            with self._termination:
                if not self._holding or self._poll.poll(self._holding.patience_ms):
                    return self._connection.recv_bytes()
            self._holding.spill_overdue()

    def _work(self, given: Range) -> bool:
        """Settle or hold one range; return whether to go on."""
        began = time.monotonic()
        self._current = held = None
        self._at = given.place
        if given.mode is Mode.QUICK and given.place is None:
            self._current = held = self._holding.begin(given.start)
        careful = given.mode in (Mode.CAREFUL, Mode.ALONE)
        failed = self._loop.run(
            given.start,
            given.end,
            one_by_one=careful or self._one_by_one,
            patience=given.patience,
        )
        self._at = None
        self._original.end_clone()
        if failed is not None:
            self._holding.spill_all()
            self._say(messages.pack_failed(failed))
            return False
        done = Done(given.start, time.monotonic() - began)
        if held is not None and self._holding.holds(held):
            held.done = done
            spans = [settled.span for settled in held.settled]
            self._say(messages.pack_held(done, spans))
            self._heed()
        else:
            self._say(messages.pack_done(done))
        return True

    def _take(self, settled: Settled) -> None:
        """Hold a finished span or settle it, and do what cannot wait for the range's end."""
        self._original.end_clone()
        held = self._current
        if held is not None and self._holding.holds(held):
            held.add(settled)
            if settled.errors:  # these have no place in the result
                self._holding.spill(held.start)
        elif self._at is not None:
            self._settle_at(self._at, settled)
        else:
            self._settle(settled)
        self._heed()

    def _heed(self) -> None:
        """Do what was ordered in the meantime and cannot wait."""
        while self._poll.poll(self._holding.patience_ms if self._holding.full else 0):
            message = self._connection.recv_bytes()
            order = messages.unpack_order(message) if message != STOP else None
            if isinstance(order, Place):
                self._place(order)
            else:
                self._orders.append(message)
            self._holding.spill_overdue()
        self._holding.spill_overdue()

    def _settle_at(self, offset: int, settled: Settled) -> None:
        self._at = offset + len(settled.output)
        if settled.errors or not self._written(offset, [settled]):  # errors have no place there
            self._settle(settled)
        else:
            self._say(messages.pack_span(offset, settled.span, Kind.SPAN_IN_PLACE))

    def _written(self, offset: int, several: list[Settled]) -> bool:
        """Write outputs where they belong; return whether they could be.

        Where files may only be so long, a segment of the worker's own may still take them.
        """
        try:
            self._main.write_at(offset, *[settled.output for settled in several])
        except StorageError:
            return False
        return True

    def _settle(self, settled: Settled) -> None:
        if self._segment is None:
            self._segment = SegmentWriter(self._folder, self._number)
        offset = self._segment.append(settled.output, settled.errors)
        self._say(messages.pack_span(offset, settled.span))

    def _spill(self, held: HeldRange) -> None:
        for settled in held.settled:
            self._settle(settled)
        if held.done is not None:
            self._say(messages.pack_done(held.done))

    def _place(self, place: Place) -> None:
        held = self._holding.take(place.start)
        if held is None:
            return
        if self._written(place.offset, held.settled):
            self._say(messages.pack_placed(place.start))
        else:
            self._spill(held)


def _opened(assignment: Assignment) -> int:
    descriptor = os.open(assignment.input, os.O_RDONLY | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if stamp != assignment.stamp[:4]:  # new links and rights are for the parent to look at
        msg = f"input {assignment.input} changed while it was being processed"
        raise OSError(msg)
    return descriptor


def end() -> NoReturn:
    """End the process at once, without the exit handlers of whoever was forked."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)


def main(connection_descriptor: int, lifeline: int, heartbeat: int) -> None:
    """Entry of a worker that shares no memory with its parent.

    Args:
        connection_descriptor: Whence it is sent all else.
        lifeline: The pipe that it ends with.
        heartbeat: See `Assignment`; the descriptor need not be the parent's.
    """
    bind_to_lifeline(lifeline)
    termination = set_signals()
    connection: Connection[bytes, bytes] = Connection(connection_descriptor)
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
    with suppress(EOFError):  # it is not needed after all
        fields = orjson.loads(connection.recv_bytes())
        told = {**fields, "stamp": tuple(fields["stamp"]), "heartbeat": heartbeat}
        serve(connection, Assignment(**told), operator, termination)
    end()
