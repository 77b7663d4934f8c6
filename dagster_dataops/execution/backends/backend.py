"""Backends: one module for each concurrency mode, which settles the open records of a job.

To add a backend, write its module, register it in `BACKENDS`, and describe its mode in
`dagster_dataops.operators.options.concurrency_modes.MODES`.
"""

from importlib import import_module
from typing import Final, Protocol, cast

from dagster_dataops.execution.agent_pool import cluster_for
from dagster_dataops.execution.job import Job

BACKENDS: Final = {
    "process": "dagster_dataops.execution.backends.processes",
    "thread": "dagster_dataops.execution.backends.threads",
    "async": "dagster_dataops.execution.backends.asynchronous",
    "single": "dagster_dataops.execution.backends.single",
}


class Backend(Protocol):
    """The interface of a backend's module."""

    def run(self, job: Job) -> None:
        """Settle the open records of a job.

        Raises:
            RecordError: A record failed and failures are not ignored.
            OutageError: Too many consecutive calls failed.
            RunStoppedError: A stop was requested.
        """
        ...


def run_backend(job: Job) -> None:
    """Settle the open records of a job in its concurrency mode; import only that backend.

    Raises:
        ClusterError: The operator asks for agents, and cannot have them.
    """
    cluster = cluster_for(job.name, job.settings, job.context.cluster)
    if cluster is not None:
        from dagster_dataops.execution.leases.head import Head

        Head(job, cluster).run()
        return
    backend = cast("Backend", import_module(BACKENDS[job.settings.concurrency_mode]))
    backend.run(job)
