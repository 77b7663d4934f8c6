"""Which backend runs a job."""

from dagster_dataops.execution.job import Job


def run_backend(job: Job, lock_descriptor: int) -> None:
    """Settle what is to do as the concurrency mode says; only that backend is imported.

    Args:
        job: What to run.
        lock_descriptor: Of the folder's lock, which no worker may keep.
    """
    match job.settings.concurrency_mode:
        case "single":
            from dagster_dataops.execution.backends.single import run_single

            run_single(job)
        case "thread":
            from dagster_dataops.execution.backends.threads import run_threads

            run_threads(job)
        case "async":
            from dagster_dataops.execution.backends.asynchronous import run_async

            run_async(job)
        case "process":
            from dagster_dataops.execution.backends.processes import run_processes

            run_processes(job, (lock_descriptor,))
