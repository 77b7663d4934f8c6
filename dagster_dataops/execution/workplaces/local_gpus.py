"""Which GPUs of this machine each worker process gets, in a run without a cluster."""

import math
from typing import Final, TypeGuard

from dagster_dataops.errors import ClusterError
from dagster_dataops.foundation.concurrency.gpus import LOOKED_FOR, visible_gpus
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.options.settings import ResolvedSettings

_GPUS: Final = "num_gpus"


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
        raise ClusterError("(none)", _too_few(asks, each, gpus))
    return tuple(shares)


def _is_share(value: object) -> TypeGuard[float]:
    """Return whether a value is a whole number from 1 on, or 1/n."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        return False
    parts = value if value >= 1 else 1 / value
    return math.isclose(parts, round(parts))


def _too_few(asks: str, each: float, gpus: list[str]) -> str:
    there = f"{counted(len(gpus), 'GPUs')} ({', '.join(gpus)})" if gpus else "no GPU"
    return (
        f"{asks}, and a worker takes {each:g} while this machine shows {there}; looked for "
        f"{LOOKED_FOR}. Set CUDA_VISIBLE_DEVICES, remove _agents, or set cluster= of "
        "DataOpsResource, or config.cluster"
    )
