"""range_worker: run ranges of an attempt in one thread."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, Final

from dagster_dataops.checkpoints.journal.finished_span import FinishedSpan
from dagster_dataops.datasets.lines import Interval
from dagster_dataops.errors import RunStoppedError, UnprocessedError
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.records.calling import Around
from dagster_dataops.execution.records.calls import Calls, opened_calls
from dagster_dataops.execution.records.range_loop import RangeLoop
from dagster_dataops.execution.records.span_loop import SpanLoop
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.timeouts.record_timeout import Stuck, TooManyStuckError
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.foundation.places.opening import open_readable
from dagster_dataops.foundation.places.range_source import Readable, close_readable
from dagster_dataops.operators.outcomes.record_context import StopRun, Tally

_SPAN_SECONDS: Final = 0.01  # seconds; a longer call is journaled before the next call


@contextmanager
def range_worker(
    attempt: Attempt, work: WorkList, sink: Sink
) -> Iterator[Callable[[Interval], None]]:
    """Yield the function that runs one range in this thread and hands its spans to the sink.

    The function calls the operator for the records of the range in order, with retries, time
    limits and rules for failures as the settings say. It journals a finished span at once, and
    calls ``sink.tick`` if this thread runs the workplace. The operator is open while the block
    runs. Each thread needs a worker of its own.

    Args:
        attempt: The operator and its settings.
        work: The open intervals; the ranges come from ``work.ranges``.
        sink: Receives the finished spans.

    Raises:
        RecordError: A record failed and failures are not ignored; its cause is the operator's
            exception.
        OutageError: Too many consecutive calls failed.
        RunStoppedError: The operator stopped the run, or a stop was requested.
        OperatorOpenError: The operator cannot be opened.
        UnprocessedError: A range is not open, does not begin and end where ranges may, or comes in
            another thread or after the block.
    """
    with ExitStack() as stack:
        source = open_readable(work.dataset.location)
        stack.callback(close_readable, source)
        try:
            calls = stack.enter_context(_calls(attempt, sink))
            stack.callback(calls.retries.report, attempt.log)
            loop = _loop(calls, source, work, sink)
            users = [threading.current_thread()]  # empty after the block
            stack.callback(users.clear)

            def run(interval: Interval) -> None:
                reason = _refused(users, interval)
                if not reason and not work.may_be_run(source, interval):
                    reason = (
                        f"bytes {interval.start} to {interval.end} of its input are no open range "
                        "between two lines or batches; take ranges from work.ranges"
                    )
                if reason:
                    raise UnprocessedError(attempt.name, reason)
                failure = loop.run(*interval)
                if failure is not None:
                    sink.add_last_failed(calls.breaker.last_failed)
                    raise sink.error_of(failure) from failure.error

            yield run
        except StopRun as stop:
            raise RunStoppedError(attempt.name, stop.reason) from stop
        except TooManyStuckError as error:
            raise RunStoppedError(attempt.name, str(error)) from error


def _refused(users: Sequence[threading.Thread], interval: object) -> str:
    """Return why a worker does not run a range; empty if it may.

    ``users`` has the thread of the worker; it is empty after the block.
    """
    if not users:
        return "a range came after the block of its range_worker; run ranges inside the block"
    if threading.current_thread() is not users[0]:
        return "a range came in another thread than its range_worker; each thread needs its own"
    numbers = interval if isinstance(interval, Interval) else ()
    if not numbers or not all(type(number) is int for number in numbers):
        return f"{interval!r} is no range of its input; take ranges from work.ranges"
    return ""


@contextmanager
def _calls(attempt: Attempt, sink: Sink) -> Iterator[Calls]:
    """Yield the open operator, within the time limit if there is a way to keep it."""
    tally = Tally()
    with ExitStack() as stack:
        around = _around(attempt, sink, tally, stack)
        yield stack.enter_context(opened_calls(attempt.operator, attempt.interrupts, tally, around))


def _around(attempt: Attempt, sink: Sink, tally: Tally, stack: ExitStack) -> Around | None:
    """Return what keeps calls within their time limit; ``None`` for nothing."""
    settings = attempt.settings
    seconds = settings.timeout
    if seconds is None or attempt.operator.__dataops__.spec.asynchronous:
        return None
    if threading.current_thread() is not sink.thread:
        from dagster_dataops.execution.timeouts.thread_calls import CallLimit  # few need it

        limit = CallLimit(seconds, Stuck(settings.max_workers), tally)
        return stack.enter_context(closing(limit)).around
    from dagster_dataops.execution.timeouts.sigalrm import Alarm, alarm_obstacle  # few need it

    obstacle = alarm_obstacle()
    if obstacle is None:
        alarm = Alarm(seconds, tally)
        stack.enter_context(alarm.installed())
        return alarm.around
    mode = settings.concurrency_mode
    attempt.log(f"_timeout={seconds:g} is not kept in {mode} mode here: {obstacle}")
    return None


def _loop(calls: Calls, source: Readable, work: WorkList, sink: Sink) -> RangeLoop:
    ticks = threading.current_thread() is sink.thread

    def write(span: FinishedSpan) -> None:
        sink.write(span)
        if ticks:
            sink.tick()
        sink.await_room()

    options: dict[str, Any] = {"checks_input": work.checks_input}
    if work.batch_size:
        from dagster_dataops.execution.records.batch_loop import BatchLoop  # few need it

        return BatchLoop(calls, source, write, **options)
    return SpanLoop(calls, source, write, span_seconds=_SPAN_SECONDS, **options)
