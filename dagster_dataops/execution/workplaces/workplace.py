"""Workplaces: where the calls of an operator run, one module for each concurrency mode.

The table of modes in `dagster_dataops.operators.options.concurrency_modes` names them.
"""

from importlib import import_module
from typing import Protocol, cast

from dagster_dataops.execution.agent_pool import cluster_for
from dagster_dataops.execution.attempt import Attempt
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.execution.sink import Sink
from dagster_dataops.execution.work_list import WorkList
from dagster_dataops.operators.options.concurrency_modes import mode_named


class Workplace(Protocol):
    """Runs the open intervals of an input, and hands finished spans to a sink."""

    def run(self, attempt: Attempt, work: WorkList, sink: Sink) -> None:
        """Run the open intervals; return when every record in them has an outcome.

        Args:
            attempt: What is run: the operator with its settings.
            work: What is open.
            sink: Where outcomes go.

        Raises:
            RecordError: A record failed and failures are not ignored.
            OutageError: Too many consecutive calls failed.
            RunStoppedError: A stop was requested.
        """
        ...


def run_workplace(sink: CheckpointSink) -> None:
    """Run the open intervals of a sink's work where its settings say; import only that workplace.

    Raises:
        ClusterError: The operator asks for agents, and cannot have them.
    """
    attempt = sink.attempt
    cluster = cluster_for(attempt.name, attempt.settings, attempt.context.cluster)
    if cluster is not None:
        from dagster_dataops.execution.leases.head import Head

        Head(sink, cluster).run()
        return
    with sink.accepting():
        _workplace(attempt.settings.concurrency_mode).run(attempt, sink.work, sink)


def _workplace(mode: str) -> Workplace:
    found = mode_named(mode).workplace
    return cast("Workplace", import_module(found) if isinstance(found, str) else found)
