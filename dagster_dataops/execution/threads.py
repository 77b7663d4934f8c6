"""Thread mode: as many calls in flight as there are workers, the next as soon as one completes.

No futures and no window in input order: one slow call holds up nobody. A window of twice the
workers would cost 2.6 to 8 times the time under heavy-tailed latencies.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from dagster_dataops.errors import RunStoppedError
from dagster_dataops.execution.callers import CallLimit, start_thread
from dagster_dataops.execution.collecting import Collector, PauseEnded
from dagster_dataops.execution.job import Job
from dagster_dataops.execution.limits import Stuck, TooManyStuckError
from dagster_dataops.execution.retrying import Retries, retries_of, tell
from dagster_dataops.execution.settling import Settle, settle_one, settling


def run_threads(job: Job) -> None:
    """Settle everything that is to do.

    Raises:
        RecordError: A record failed and failures are not ignored.
        RunStoppedError: Too many calls did not return that were given up.
    """
    collector = Collector(job)
    retries = retries_of(job.settings, collector.pause)
    stuck = Stuck(job.settings.max_workers)

    def work() -> None:
        try:
            with _settling(job, retries, stuck) as settle:
                while (line := collector.take()) is not None:
                    collector.put(line, settle_one(settle, line.text))
        except PauseEnded:
            return
        except TooManyStuckError as error:
            collector.fail(RunStoppedError(job.name, str(error)))
        except BaseException as error:  # noqa: BLE001 - handed to the main thread
            collector.fail(error)

    try:
        collector.watch(_started(work, job))
    finally:
        collector.close()
        tell(retries, job.progress)


@contextmanager
def _settling(job: Job, retries: Retries | None, stuck: Stuck) -> Iterator[Settle]:
    """Yield what settles lines in this thread, each call within the time limit if there is one."""
    interrupts = (PauseEnded, TooManyStuckError)
    seconds = job.settings.timeout
    if seconds is None or job.operator.__dataops__.spec.asynchronous:
        with settling(job.operator, interrupts, retries=retries) as settle:
            yield settle
        return
    with (
        closing(CallLimit(seconds, stuck)) as limit,
        settling(job.operator, interrupts, limit.around, retries) as settle,
    ):
        yield settle


def _started(work: Callable[[], None], job: Job) -> list[threading.Thread]:
    threads = [
        threading.Thread(target=work, name=f"{job.name}-{number}", daemon=True)
        for number in range(job.settings.max_workers)
    ]
    for thread in threads:
        start_thread(thread)
    return threads
