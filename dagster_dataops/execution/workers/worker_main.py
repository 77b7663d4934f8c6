"""A worker process: takes ranges, settles their lines, reports spans. It never imports Dagster.

One that was forked from the run's process serves that run. Any other is sent the operator, serves
run after run, and forgets each before the next: what remains are the modules that were imported.
"""

import gc
import importlib
import os
import select
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, NoReturn

import orjson

from dagster_dataops.checkpoints.journal.segments import SegmentWriter
from dagster_dataops.checkpoints.journal.settled_span import Settled
from dagster_dataops.errors import DataOpsError, StorageError
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.fork_guard import Original
from dagster_dataops.execution.records.retries import retries_of
from dagster_dataops.execution.records.settle import Settle, settling
from dagster_dataops.execution.records.span_loop import SpanLoop
from dagster_dataops.execution.timeouts.record_timeout import Forward
from dagster_dataops.execution.timeouts.sigalrm import Alarm
from dagster_dataops.execution.workers import protocol
from dagster_dataops.execution.workers.heartbeat import Heartbeat
from dagster_dataops.execution.workers.held_output import HeldRange, Holding
from dagster_dataops.execution.workers.loaded_modules import LoadedModules
from dagster_dataops.execution.workers.parent_death import bind_to_lifeline
from dagster_dataops.execution.workers.process_environment import place
from dagster_dataops.execution.workers.protocol import STOP, Done, Kind, Mode, Place, Range
from dagster_dataops.execution.workers.signals import Terminated, Termination, set_signals
from dagster_dataops.execution.workers.standard_streams import (
    flush_streams,
    leave_streams,
    receive_streams,
)
from dagster_dataops.operators.operator import Operator
from dagster_dataops.operators.pickling import receive

_IDLE_MS: Final = 60_000  # without a run, after which a worker ends
_TIDY_MS: Final = 1_000  # without a run, after which it looks for garbage


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker is told of a run.

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
) -> bool:
    """Work until told to stop, terminated, or left alone.

    Returns:
        Whether it was told to stop, so that nothing was cut short.
    """
    stopped = False
    with (
        suppress(Terminated, EOFError, ConnectionError),
        _settling(operator, assignment) as means,
    ):
        try:
            worker = _Worker(connection, assignment, operator, means, termination)
        except (OSError, DataOpsError) as error:
            connection.send_bytes(protocol.pack_fault(str(error)))
            return False
        with closing(worker):
            connection.send_bytes(bytes([Kind.READY]))
            stopped = worker.run()
    return stopped


class _Means(NamedTuple):
    """What settles lines, what counts failures, and what tells the parent the record at work."""

    settle: Settle
    breaker: Breaker
    heartbeat: Heartbeat | None


@contextmanager
def _settling(operator: Operator, assignment: Assignment) -> Iterator[_Means]:
    """Yield how lines are settled; there is a heartbeat where there is a time limit.

    An alarm ends calls that take too long. Code that holds the interpreter hears none: then the
    parent ends the worker.
    """
    resolved, interrupts = operator.__dataops__.resolved, (Terminated,)
    breaker = Breaker(resolved.stop_after_failures)
    retries = retries_of(resolved, breaker=breaker)
    if resolved.timeout is None or assignment.heartbeat < 0:
        with settling(operator, interrupts, retries=retries) as settle:
            yield _Means(settle, breaker, None)
        return
    with closing(Heartbeat(assignment.heartbeat)) as heartbeat:
        if operator.__dataops__.spec.asynchronous:  # these keep their time themselves
            with settling(operator, interrupts, heartbeat.around, retries) as settle:
                yield _Means(settle, breaker, heartbeat)
            return
        alarm = Alarm(resolved.timeout)

        def around(forward: Forward) -> Forward:
            return heartbeat.around(alarm.around(forward))

        with alarm.installed(), settling(operator, interrupts, around, retries) as settle:
            yield _Means(settle, breaker, heartbeat)


class _Worker:
    def __init__(
        self,
        connection: "Connection[bytes, bytes]",
        assignment: Assignment,
        operator: Operator,
        means: _Means,
        termination: Termination,
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
        self._input = _opened(assignment)
        self._main = SegmentWriter(self._folder, assignment.main_segment, shared=True)
        self._holding = Holding(self._spill)
        self._current: HeldRange | None = None
        self._at: int | None = None  # where the next span of the range under way belongs
        self._one_by_one = assignment.one_by_one
        self._speaking = Lock()  # one message at a time
        self._breaker = means.breaker
        self._loop = SpanLoop(
            termination.during(means.settle),
            self._input,
            self._take,
            operator=operator.__dataops__.spec.qualified_name,
            ignore_errors=assignment.ignore_errors,
            check_input=assignment.check_input,
            breaker=means.breaker,
            announce=means.heartbeat.announce if means.heartbeat else None,
            shortened=self._shorten,
        )

    def run(self) -> bool:
        """Do what is ordered; whatever ends it leaves what was finished settled.

        Returns:
            Whether it was told to stop.
        """
        try:
            try:
                return self._obey()
            finally:
                self._loop.close()
                self._holding.spill_all()
                if failed := self._breaker.last_failed:
                    self._say(protocol.pack_last_failed(failed))
        except DataOpsError as error:  # the disk
            self._say(protocol.pack_fault(str(error)))
            return False

    def close(self) -> None:
        """Let go of the input and the segments."""
        os.close(self._input)
        self._main.close()
        if self._segment is not None:
            self._segment.close()

    def _say(self, message: bytes) -> None:
        with self._speaking:
            self._connection.send_bytes(message)

    def _shorten(self, end: int) -> None:
        with suppress(OSError):  # nobody is left to hear it
            self._say(protocol.pack_shortened(end))

    def _obey(self) -> bool:
        while (message := self._next_order()) != STOP:
            order = protocol.unpack_order(message)
            if isinstance(order, Place):
                self._place(order)
            elif not self._work(order):
                return False
        return True

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
            self._say(protocol.pack_failed(failed))
            return False
        done = Done(given.start, time.monotonic() - began)
        if held is not None and self._holding.holds(held):
            held.done = done
            spans = [settled.span for settled in held.settled]
            self._say(protocol.pack_held(done, spans))
            self._heed()
        else:
            self._say(protocol.pack_done(done))
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
            order = protocol.unpack_order(message) if message != STOP else None
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
            self._say(protocol.pack_span(offset, settled.span, Kind.SPAN_IN_PLACE))

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
        self._say(protocol.pack_span(offset, settled.span))

    def _spill(self, held: HeldRange) -> None:
        for settled in held.settled:
            self._settle(settled)
        if held.done is not None:
            self._say(protocol.pack_done(held.done))

    def _place(self, place: Place) -> None:
        held = self._holding.take(place.start)
        if held is None:
            return
        if self._written(place.offset, held.settled):
            self._say(protocol.pack_placed(place.start))
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
    flush_streams()
    os._exit(0)


def main(connection_descriptor: int, lifeline: int) -> NoReturn:
    """Entry of a worker that shares no memory with its parent, and serves run after run.

    Args:
        connection_descriptor: Whence it is sent all else.
        lifeline: The pipe that it ends with.
    """
    bind_to_lifeline(lifeline)
    termination = set_signals()
    connection: Connection[bytes, bytes] = Connection(connection_descriptor)
    modules = LoadedModules()
    with suppress(Terminated, EOFError, ConnectionError):
        while _is_wanted(connection, termination) and _serve_next(connection, termination, modules):
            leave_streams()
            connection.send_bytes(bytes([Kind.IDLE]))
    end()


def _is_wanted(connection: "Connection[bytes, bytes]", termination: Termination) -> bool:
    """Wait for the next run, and tidy up if it does not come soon; return whether it came."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    with termination:
        if poll.poll(_TIDY_MS):
            return True
        gc.collect()
        return bool(poll.poll(_IDLE_MS))


def _serve_next(
    connection: "Connection[bytes, bytes]", termination: Termination, modules: LoadedModules
) -> bool:
    """Serve one run; return whether this process is fit for another one."""
    heartbeat = receive_streams(connection)
    payload, fields = connection.recv_bytes(), orjson.loads(connection.recv_bytes())
    termination.install()  # an operator may have had signals of its own
    before, began = place(), time.time_ns()
    if modules.changed():
        connection.send_bytes(bytes([Kind.STALE]))
        return False
    importlib.invalidate_caches()  # files may have come since
    operator = _received(connection, payload)
    if operator is None:
        return False
    modules.take_note(began)
    told = {**fields, "stamp": tuple(fields["stamp"]), "heartbeat": heartbeat}
    stopped = serve(connection, Assignment(**told), operator, termination)
    modules.take_note(began)  # what was imported while it worked
    return stopped and place() == before


def _received(connection: "Connection[bytes, bytes]", payload: bytes) -> Operator | None:
    """Return the operator; ``None``, said to the parent, if it cannot be loaded."""
    try:
        return receive(payload)
    except BaseException as error:  # noqa: BLE001 - importing user code may raise anything
        import traceback

        text = "".join(traceback.format_exception(error))
        fault = protocol.pack_fault(f"it cannot be loaded there:\n{text}", Kind.UNABLE)
        connection.send_bytes(fault)
        return None
