"""run_workplace: run an attempt in the workplace of its concurrency mode."""

import math
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeGuard, cast

from dagster_dataops.errors import ClusterError
from dagster_dataops.execution.checkpoint_sink import CheckpointSink
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.options.concurrency_modes import Workplace, mode_named
from dagster_dataops.operators.options.settings import ResolvedSettings

if TYPE_CHECKING:
    from dagster_dataops.execution.agent_pool import Cluster

_GPUS: Final = "num_gpus"


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


def gpus_of_workers(operator: str, settings: ResolvedSettings) -> tuple[str, ...]:
    """Return the value of ``CUDA_VISIBLE_DEVICES`` for each worker process.

    There are as many workers as ``_agents={"num_gpus": ...}`` allows: 1 gives each a GPU of its
    own, 2 two of them, and 0.5 one GPU to two workers.

    Args:
        operator: Its qualified name.
        settings: Its settings; ``agents`` are the resources of each worker.

    Raises:
        ClusterError: The resources are others than GPUs, or there are too few GPUs.
    """
    from dagster_dataops.foundation.concurrency.gpus import LOOKED_FOR, visible_gpus  # rare

    wanted = dict(settings.agents or {})
    asks = f"operator {operator} asks for agents with _agents={wanted}, but the run has no cluster"
    each = wanted.get(_GPUS)
    if set(wanted) != {_GPUS} or not _is_share(each):
        reason = (
            f"{asks}: set cluster= of DataOpsResource, or config.cluster. Without a cluster it can "
            "only be {'num_gpus': n}, with a whole number of GPUs for each worker, or 1/n of one"
        )
        raise ClusterError("(none)", reason)
    gpus = visible_gpus()
    if each < 1:
        shares = [gpu for gpu in gpus for _ in range(round(1 / each))]
    else:
        count = round(each)
        starts = range(0, len(gpus) - count + 1, count)
        shares = [",".join(gpus[at : at + count]) for at in starts]
    if not shares:
        there = f"{counted(len(gpus), 'GPUs')} ({', '.join(gpus)})" if gpus else "no GPU"
        reason = (
            f"{asks}, and a worker takes {each:g} while this machine shows {there}; looked for "
            f"{LOOKED_FOR}. Set CUDA_VISIBLE_DEVICES, remove _agents, or set cluster= of "
            "DataOpsResource, or config.cluster"
        )
        raise ClusterError("(none)", reason)
    return tuple(shares)


def _is_share(value: object) -> TypeGuard[float]:
    """Return whether a value is a whole number from 1 on, or 1/n."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        return False
    parts = value if value >= 1 else 1 / value
    return math.isclose(parts, round(parts))
