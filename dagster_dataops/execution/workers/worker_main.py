"""The code of a worker process: receive ranges, run their lines, report spans.

It never imports Dagster. A worker that was forked from the run's process serves only that run. Any
other worker receives the operator, serves run after run, and keeps only the imported modules.
"""

import gc
import importlib
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.checkpoints.journal.segments import SegmentWriter
from dagster_dataops.datasets.file_values.file_reads import FileReadLog
from dagster_dataops.datasets.file_values.result_roots import keeper_in_run
from dagster_dataops.errors import DataOpsError, OperatorOpenError
from dagster_dataops.execution.records.batch_loop import BatchLoop
from dagster_dataops.execution.records.calling import Around
from dagster_dataops.execution.records.calls import Calls, opened_calls
from dagster_dataops.execution.records.range_loop import RangeLoop
from dagster_dataops.execution.records.span_loop import SpanLoop
from dagster_dataops.execution.timeouts.sigalrm import Alarm
from dagster_dataops.execution.workers import protocol
from dagster_dataops.execution.workers.fitness import Fitness, UnfitError
from dagster_dataops.execution.workers.heartbeat import Heartbeat
from dagster_dataops.execution.workers.loaded_modules import LoadedModules
from dagster_dataops.execution.workers.parent_death import end_with_parent
from dagster_dataops.execution.workers.process_environment import surroundings
from dagster_dataops.execution.workers.protocol import STOP, Kind, Mode, Range
from dagster_dataops.execution.workers.signals import (
    SIGNALS,
    Terminated,
    Termination,
    set_signals,
)
from dagster_dataops.execution.workers.standard_streams import (
    flush_streams,
    leave_streams,
    receive_streams,
)
from dagster_dataops.foundation.concurrency.fork_safety import register_waiting_threads
from dagster_dataops.foundation.concurrency.gpus import VISIBLE
from dagster_dataops.foundation.concurrency.memory_limit import MemoryLimit
from dagster_dataops.foundation.places.bucket import location_of
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import Readable, close_readable, state_of
from dagster_dataops.operators.definition.operator import Operator, keeping_files
from dagster_dataops.operators.outcomes.record_context import StopRun, Tally
from dagster_dataops.operators.pickling import receive

_IDLE_MS: Final = 60_000  # seconds without a run after which the worker ends
_TIDY_MS: Final = 1_000  # seconds without a run after which the worker collects garbage
_WATCH_SECONDS: Final = 0.05  # seconds after which the current range is checked for lateness
_watching: Final[set[int]] = set()  # native ids of threads that only wait


@dataclass(frozen=True, slots=True)
class Assignment:
    """The description of a run that a worker receives.

    Attributes:
        input: Path of the input, or the key of the object.
        stamp: `FileState` that the input must have; the time of change is not compared.
        folder: The checkpoint's folder.
        segment: Number of the worker's own segment.
        checks_input: Whether spans carry a checksum of their input.
        heartbeat: Descriptor of the shared memory with the current record; -1 for none.
        bucket: Facts about the bucket of an object, from `facts_of_location`; none for a file.
        keeper: Facts about the `FileKeeper` of the run, from `facts_of_keeper`; none without one.
        gpus: `CUDA_VISIBLE_DEVICES` of the worker; empty to leave it as it is.
        room: As for `Sink`.
    """

    input: str
    stamp: tuple[int, ...]
    folder: str
    segment: int
    checks_input: bool
    heartbeat: int = -1
    bucket: tuple[Any, ...] = field(default=(), repr=False)
    keeper: tuple[Any, ...] = field(default=(), repr=False)
    gpus: str = ""
    room: int = 0


def see_gpus(gpus: str) -> None:
    """Let this process see the GPUs of a run alone; before the operator is loaded."""
    if gpus:
        os.environ[VISIBLE] = gpus


def serve(
    connection: "Connection[bytes, bytes]",
    assignment: Assignment,
    operator: Operator,
    termination: Termination,
) -> bool:
    """Serve a run until the parent stops the worker, terminates it, or ends.

    Returns:
        Whether the parent stopped it, so that all its work is finished.
    """
    memory = MemoryLimit(operator.__dataops__.resolved.max_worker_memory_mb)
    fitness = Fitness(memory)
    operator = keeping_files(operator, keeper_in_run(assignment.keeper))
    with suppress(Terminated, EOFError, ConnectionError):
        try:
            with (
                _opened_means(operator, assignment, fitness, memory) as means,
                closing(_Worker(connection, assignment, means, termination)) as worker,
            ):
                connection.send_bytes(protocol.pack(Kind.READY))
                return worker.run()
        except OperatorOpenError as error:
            fault = protocol.pack(Kind.UNOPENED, *error.args)
        except StopRun as stop:
            fault = protocol.pack_fault(stop.reason, Kind.STOPPED)
        except UnfitError as error:
            fault = protocol.pack_fault(str(error), Kind.UNFIT)
        except (OSError, DataOpsError) as error:  # the disk, or another input
            unfit = fitness.reason(error)
            fault = protocol.pack_fault(unfit or str(error), Kind.UNFIT if unfit else Kind.FAULT)
        connection.send_bytes(fault)
    return False


class _Means(NamedTuple):
    """The open operator, its memory limit, and the heartbeat if its calls have a time limit."""

    calls: Calls
    memory: MemoryLimit
    heartbeat: Heartbeat | None


@contextmanager
def _opened_means(
    operator: Operator, assignment: Assignment, fitness: Fitness, memory: MemoryLimit
) -> Iterator[_Means]:
    """Yield the open operator; there is a heartbeat if there is a time limit.

    An alarm ends calls that take too long. It has no effect on code that holds the interpreter:
    then the parent kills the worker.
    """
    timeout, tally = operator.__dataops__.resolved.timeout, Tally()
    heartbeat: Heartbeat | None = None
    around: Around | None = None
    with ExitStack() as stack:
        if timeout is not None and assignment.heartbeat >= 0:
            heartbeat = stack.enter_context(closing(Heartbeat(assignment.heartbeat)))
            around = heartbeat.around
            tally.waits = heartbeat.pause
            if not operator.__dataops__.spec.asynchronous:  # these apply the time limit themselves
                alarm = Alarm(timeout, tally)
                stack.enter_context(alarm.installed())
                around = _both(heartbeat.around, alarm.around)
        calls = stack.enter_context(opened_calls(operator, (Terminated,), tally, around))
        stack.enter_context(memory.installed())
        fitness.note_limits()  # ``open`` may have changed them
        yield _Means(calls._replace(call=fitness.checked(calls.call)), memory, heartbeat)


def _both(outer: Around, inner: Around) -> Around:
    return lambda forward: outer(inner(forward))


class _Worker:
    def __init__(
        self,
        connection: "Connection[bytes, bytes]",
        assignment: Assignment,
        means: _Means,
        termination: Termination,
    ) -> None:
        self._connection = connection
        self._termination = termination
        self._input = _opened(assignment)
        self._segment_place = Path(assignment.folder), assignment.segment
        # Created with the first span: the parent may already delete the folder of an idle worker.
        self._segment: SegmentWriter | None = None
        self._room = assignment.room
        self._sending = Lock()  # one message at a time
        self._breaker = means.calls.breaker
        self._memory = means.memory
        self._keeper = means.calls.operator.__dataops__.keeper
        self._reads = FileReadLog(Path(assignment.folder), str(assignment.segment))
        self._loop = self._made_loop(assignment, means)
        self._ended = Event()
        self._watch = Thread(target=self._watch_range, name="dataops-range", daemon=True)
        self._watch.start()
        _watching.add(self._watch.native_id or 0)

    def _made_loop(self, assignment: Assignment, means: _Means) -> RangeLoop:
        calls = means.calls._replace(call=self._termination.during(means.calls.call))
        kind = BatchLoop if calls.operator.__dataops__.spec.batch else SpanLoop
        return kind(
            calls,
            self._input,
            self._write,
            checks_input=assignment.checks_input,
            announce=means.heartbeat.announce if means.heartbeat else None,
            shortened=self._shorten,
        )

    def run(self) -> bool:
        """Run ranges, write finished records in any case; return whether the parent stopped it."""
        try:
            while (message := self._next_order()) != STOP:
                if not self._work(protocol.unpack_range(message)):
                    return False
            return True
        finally:
            if failed := self._breaker.last_failed:
                self._send(protocol.pack(Kind.LAST_FAILED, *failed))

    def _work(self, order: Range) -> bool:
        """Run one range; return whether to continue."""
        careful = order.mode is not Mode.NORMAL
        failure = self._loop.run(
            order.start, order.end, one_by_one=careful, patience=order.patience
        )
        if failure is not None:
            self._send(protocol.pack(Kind.FAILED, *failure._replace(error=None)[:-1]))
            return False
        self._report_done(time.monotonic() - self._loop.began)
        if self._memory.is_half_used:  # another worker takes its place
            self._send(protocol.pack(Kind.LEAVING))
            return False
        return True

    def _report_done(self, seconds: float) -> None:
        self._send(protocol.pack(Kind.DONE, seconds))

    def _next_order(self) -> bytes:
        with self._termination.waiting():
            return self._connection.recv_bytes()

    def close(self) -> None:
        """End the thread and close the input and the segment."""
        self._ended.set()
        self._watch.join()
        self._reads.close()
        _watching.discard(self._watch.native_id or 0)
        close_readable(self._input)
        if self._segment is not None:
            self._segment.close()

    def _send(self, message: bytes) -> None:
        with self._sending:
            self._connection.send_bytes(message)

    def _watch_range(self) -> None:
        """Return the rest of a range that takes too long, even while one record is stuck."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        while not self._ended.wait(_WATCH_SECONDS):
            self._loop.shorten_if_late()

    def _shorten(self, end: int) -> None:
        with suppress(OSError):  # the parent has ended
            self._send(protocol.pack(Kind.SHORTENED, end))

    def _write(self, span: FinishedSpan) -> None:
        """Append a finished span to the segment and report it."""
        if self._segment is None:
            self._segment = SegmentWriter(*self._segment_place)
        if self._keeper is not None:
            self._keeper.sync()
        self._reads.write()
        if self._room:
            self._await_room(self._segment, len(span.output) + len(span.errors))
        offset = self._segment.append(span.output, span.errors)
        notes = "" if span.notes is None else span.notes.to_text()
        self._send(protocol.pack(Kind.SPAN, offset, notes, *span.span))

    def _await_room(self, segment: SegmentWriter, size: int) -> None:
        """Wait until there is room for a span, or this worker is to end."""
        from dagster_dataops.checkpoints.journal.sent_pieces import await_room  # only for buckets

        termination = self._termination
        await_room(segment.path, segment.offset, size, self._room, lambda: termination.requested)


register_waiting_threads(_watching.copy)


def _opened(assignment: Assignment) -> Readable:
    location = location_of(assignment.input, assignment.bucket)
    source = open_readable(location)
    now = state_of(source)
    if not now.resembles(assignment.stamp):  # the parent compares the rest
        msg = f"input {location} changed while it was being processed"
        raise OSError(msg)
    return source


def end() -> NoReturn:
    """End the process at once, without the exit handlers of the process that was forked."""
    flush_streams()
    os._exit(0)


def main(connection_descriptor: int, parent_pipe: int) -> NoReturn:
    """Serve run after run, in a worker that shares no memory with its parent.

    Args:
        connection_descriptor: Descriptor of the pipe to the parent.
        parent_pipe: Descriptor of a pipe; the worker ends when its other end closes.
    """
    end_with_parent(parent_pipe)
    termination = set_signals()
    connection: Connection[bytes, bytes] = Connection(connection_descriptor)
    modules = LoadedModules()
    with suppress(Terminated, EOFError, ConnectionError):
        while _is_wanted(connection, termination) and _serve_next(connection, termination, modules):
            leave_streams()
            connection.send_bytes(protocol.pack(Kind.IDLE))
    end()


def _is_wanted(connection: "Connection[bytes, bytes]", termination: Termination) -> bool:
    """Wait for the next run, and collect garbage meanwhile; return whether one arrived."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    with termination.waiting():
        if poll.poll(_TIDY_MS):
            return True
        gc.collect()
        return bool(poll.poll(_IDLE_MS))


def _serve_next(
    connection: "Connection[bytes, bytes]", termination: Termination, modules: LoadedModules
) -> bool:
    """Serve one run; return whether this process can serve another one."""
    heartbeat = receive_streams(connection)
    payload, fields = connection.recv_bytes(), orjson.loads(connection.recv_bytes())
    termination.install()  # the last operator may have changed the handlers
    before, began = surroundings(), time.time_ns()
    if modules.changed():
        connection.send_bytes(protocol.pack(Kind.STALE))
        return False
    importlib.invalidate_caches()  # there may be new files
    see_gpus(fields.get("gpus", ""))
    operator = _received(connection, payload)
    if operator is None:
        return False
    modules.take_note(began)
    fields = {**fields, "stamp": tuple(fields["stamp"]), "heartbeat": heartbeat}
    stopped = serve(connection, Assignment(**fields), operator, termination)
    modules.take_note(began)  # modules that were imported during the run
    return stopped and surroundings() == before


def _received(connection: "Connection[bytes, bytes]", payload: bytes) -> Operator | None:
    """Return the operator; if it cannot be loaded, report that and return ``None``."""
    try:
        return receive(payload)
    except BaseException as error:  # noqa: BLE001 - importing user code may raise anything
        import traceback

        text = "".join(traceback.format_exception(error))
        fault = protocol.pack_fault(f"it cannot be loaded there:\n{text}", Kind.UNABLE)
        connection.send_bytes(fault)
        return None
