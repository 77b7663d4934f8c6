"""run_workplace: run an attempt in the workplace of its concurrency mode."""

from importlib import import_module
from typing import cast

from dagster_dataops.execution.agent_pool import cluster_for
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.operators.options.concurrency_modes import Workplace, mode_named


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
