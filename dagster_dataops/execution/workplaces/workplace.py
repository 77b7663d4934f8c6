"""run_workplace: run an attempt in the workplace of its concurrency mode."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.operators.options.concurrency_modes import Workplace, mode_named
from dagster_dataops.operators.options.settings import ResolvedSettings

if TYPE_CHECKING:
    from dagster_dataops.execution.agent_pool import Cluster


def run_workplace(sink: CheckpointSink) -> None:
    """Run the open intervals of a sink's work where its settings say; import only that workplace.

    Raises:
        ClusterError: The operator asks for agents or GPUs, and cannot have them.
    """
    attempt = sink.attempt
    cluster = cluster_for(attempt.settings, attempt.context.cluster)
    if cluster is not None:
        from dagster_dataops.execution.leases.head import Head

        Head(sink, cluster).run()
        return
    if isinstance(attempt.settings.agents, Mapping):
        from dagster_dataops.execution.workplaces.local_gpus import gpus_of_workers

        attempt.gpus = gpus_of_workers(attempt.name, attempt.settings)
    with sink.accepting():
        _workplace(attempt.settings.concurrency_mode).run(attempt, sink.work, sink)


def cluster_for(settings: ResolvedSettings, cluster: "Cluster | None") -> "Cluster | None":
    """Return the cluster that an operator runs on; ``None`` for this machine."""
    if settings.agents is False:
        return None
    return cluster if settings.concurrency_mode == "process" else None


def _workplace(mode: str) -> Workplace:
    workplace = mode_named(mode).workplace
    return cast("Workplace", import_module(workplace) if isinstance(workplace, str) else workplace)
