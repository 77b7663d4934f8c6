"""Single mode: all work in the caller's thread, so that ``breakpoint()`` works."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, TypeVar

from dagster_dataops.checkpoints.journal.settled_span import SettledSpan
from dagster_dataops.datasets.lines import Interval, next_line_start
from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution.backends.collector import Collector
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.records.breaker import Breaker
from dagster_dataops.execution.records.range_loop import Terms
from dagster_dataops.execution.records.retries import Retries
from dagster_dataops.execution.records.settle import line_settling, settling
from dagster_dataops.execution.records.span_loop import SpanLoop
from dagster_dataops.execution.timeouts.sigalrm import Alarm, alarm_obstacle
from dagster_dataops.operators.outcomes.record_context import StopRun, Tally
from dagster_dataops.places.opening import open_readable
from dagster_dataops.places.range_source import Readable, close_readable

T = TypeVar("T")
_RANGE_BYTES = 4 << 20
_SETTLE_SECONDS: Final = 0.01  # seconds; a longer call is settled before the next call


def run(job: Job) -> None:
    """Settle the open records of a job.

    Raises:
        RecordError: A record failed and failures are not ignored; its cause is the operator's
            exception.
        OutageError: Call after call failed.
        RunStoppedError: The operator stopped the run.
    """
    if job.batches:
        _run_batches(job)
        return
    segment = job.checkpoint.new_segment()

    def write(settled: SettledSpan) -> None:
        offset = segment.append(settled.output, settled.errors)
        job.settle(segment.number, offset, [settled.span], [settled.notes])
        job.tick()

    descriptor = open_readable(job.dataset.location)
    breaker = Breaker(job.settings.stop_after_failures, operator=job.operator)
    retries, tally = Retries(job.settings, breaker=breaker), Tally()
    terms = Terms(
        write=write,
        operator=job.name,
        ignore_errors=job.settings.ignore_errors,
        check_input=job.check_input,
        apart=job.keeps_outcomes,
        breaker=breaker,
        tally=tally,
    )
    try:
        with _settling(settling, job, retries, tally) as settle:
            loop = SpanLoop(settle, descriptor, terms, _SETTLE_SECONDS)
            for start, end in _ranges(descriptor, job.todo):
                failure = loop.run(start, end)
                if failure is not None:
                    job.last_failed = set(breaker.last_failed)
                    raise job.error_of(failure) from failure.error
    except StopRun as stop:
        raise RunStoppedError(job.name, stop.reason) from stop
    finally:
        close_readable(descriptor)
        segment.close()
        retries.report(job.context.progress)


def _run_batches(job: Job) -> None:
    collector = Collector(job)
    retries, tally = Retries(job.settings, breaker=collector.breaker), Tally()

    def settle_all() -> None:
        with _settling(line_settling, job, retries, tally) as settle:
            while lines := collector.take():
                collector.put(settle(lines))
                collector.drain()
                job.tick()

    try:
        collector.watch([], settle_all)
    except StopRun as stop:
        raise RunStoppedError(job.name, stop.reason) from stop
    finally:
        collector.close()
        retries.report(job.context.progress)


@contextmanager
def _settling(
    made: Callable[..., AbstractContextManager[T]], job: Job, retries: Retries, tally: Tally
) -> Iterator[T]:
    """Yield the function that settles lines, within the time limit if a timer can be used.

    Args:
        made: `settling` or `line_settling`.
        job: The job.
        retries: Further tries of failed records.
        tally: Receives counts and dispositions.
    """
    alarm, interrupts = _alarm(job, tally), job.context.interrupts
    with (
        alarm.installed() if alarm else nullcontext(),
        made(job.operator, interrupts, alarm.around if alarm else None, retries, tally) as settle,
    ):
        yield settle


def _alarm(job: Job, tally: Tally) -> Alarm | None:
    seconds = job.settings.timeout
    if seconds is None or job.operator.__dataops__.spec.asynchronous:
        return None
    obstacle = alarm_obstacle()
    if obstacle is None:
        return Alarm(seconds, tally)
    job.context.progress.note(f"_timeout={seconds:g} is not kept in single mode here: {obstacle}")
    return None


def _ranges(descriptor: Readable, todo: list[Interval]) -> Iterator[Interval]:
    for start, last in todo:
        position = start
        while position < last:
            end = next_line_start(descriptor, min(position + _RANGE_BYTES, last), last)
            yield Interval(position, end)
            position = end
