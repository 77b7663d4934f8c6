"""run_workplace: run an attempt in the workplace of its concurrency mode."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from dagster_dataops.errors import ClusterError
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.operators.options.concurrency_modes import Workplace, mode_named
from dagster_dataops.operators.options.settings import ResolvedSettings

if TYPE_CHECKING:
    from dagster_dataops.execution.agent_pool import Cluster


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


def cluster_for(
    operator: str, settings: ResolvedSettings, cluster: "Cluster | None"
) -> "Cluster | None":
    """Return the cluster that an operator runs on; ``None`` for this machine.

    Args:
        operator: Its qualified name.
        settings: Its settings.
        cluster: The cluster of the run.

    Raises:
        ClusterError: The operator asks for agents, and cannot have them.
    """
    if settings.agents is False:
        return None
    if settings.agents is not None and cluster is None:
        reason = (
            f"operator {operator} asks for agents with _agents={dict(settings.agents)}, but the "
            "run has no cluster: set cluster= of DataOpsResource, or config.cluster"
        )
        raise ClusterError("(none)", reason)
    return cluster if settings.concurrency_mode == "process" else None


def _workplace(mode: str) -> Workplace:
    found = mode_named(mode).workplace
    return cast("Workplace", import_module(found) if isinstance(found, str) else found)
