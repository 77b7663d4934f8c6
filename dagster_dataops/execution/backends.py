"""Which backend runs a job."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dagster_dataops.execution.job import Job
from dagster_dataops.operators.operator import Operator

if TYPE_CHECKING:
    from dagster_dataops.execution.pool import WorkerPool


@contextmanager
def workers_ahead(operator: Operator, lock_descriptor: int) -> Iterator["WorkerPool | None"]:
    """Have the first worker process load the operator while the checkpoint is looked at.

    Yields:
        For the job; whoever takes them has to end them. Those that nobody started end here.
    """
    if operator.__dataops__.resolved.concurrency_mode != "process":
        yield None
        return
    from dagster_dataops.execution.pool import WorkerPool

    pool = WorkerPool(operator, (lock_descriptor,))
    try:
        pool.begin()
        yield pool
    finally:
        if not pool.started:
            pool.close(0.0)


def run_backend(job: Job, lock_descriptor: int) -> None:
    """Settle what is to do as the concurrency mode says; only that backend is imported.

    Args:
        job: What to run.
        lock_descriptor: Of the folder's lock, which no worker may keep.
    """
    match job.settings.concurrency_mode:
        case "single":
            from dagster_dataops.execution.single import run_single

            run_single(job)
        case "thread":
            from dagster_dataops.execution.threads import run_threads

            run_threads(job)
        case "async":
            from dagster_dataops.execution.asynchronous import run_async

            run_async(job)
        case "process":
            from dagster_dataops.execution.processes import run_processes

            run_processes(job, (lock_descriptor,))
