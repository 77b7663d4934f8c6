"""batches_sensor: launch a run when the server has answered the batches of a node."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from dagster_dataops.assets.automation.awaited_runs import AwaitedRun, awaiting_sensor, parts_of
from dagster_dataops.assets.metadata.metadata_keys import BATCHES_TAG
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.errors import ModelError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.batches.batch_api import BatchApi
from dagster_dataops.models.batches.batch_delivery import BatchState
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.llm_operator import LLMOperator
from dagster_dataops.models.model_operator import client_among


def batches_sensors(planned: PlannedPipeline) -> list[dg.SensorDefinition]:
    """Return the sensor ``<pipeline>_batches``; none if no node needs it.

    Nodes with ``delivery="batch"`` and ``wait="sensor"`` need it. It asks the server about batches
    that are submitted and not collected. When all of a node are answered, it launches a run of the
    node and of all nodes downstream; not if the user cancelled one of them.
    """
    plans = [plan for plan in planned.plans if _delivers_batches(plan)]
    if not plans:
        return []
    sensor = awaiting_sensor(
        planned,
        plans,
        "batches",
        _waiting,
        description="Launches a run when the server has answered the batches of a node.",
        skipped=lambda left: (
            f"the server has not finished the batches of {counted(left, 'results')}"
        ),
    )
    return [sensor]


def _delivers_batches(plan: AssetPlan) -> bool:
    operator: Any = plan.node.operator
    batched = isinstance(operator, LLMOperator) and operator.delivery == "batch"
    return batched and operator.wait == "sensor"


def _waiting(
    context: dg.SensorEvaluationContext, plans: Sequence[AssetPlan], dataops: DataOpsResource
) -> Iterator[tuple[AwaitedRun, int]]:
    """Yield each run that collects batches, and 1 if the server has not finished them, else 0.

    No batch is asked about if some were not submitted before the run died: the next run does that.
    """
    for plan, key in parts_of(context, plans):
        state = BatchState(plan.folder(dataops, key).path)
        if (state.waiting or state.interrupted) and not state.cancelled:
            ids = [] if state.interrupted else state.waiting
            operator: Any = plan.node.operator
            ended = asyncio.run(_all_ended(client_among(operator.client, dataops.clients), ids))
            yield AwaitedRun(BATCHES_TAG, plan, key, f"{sorted(ids)}"), int(not ended)


async def _all_ended(client: ModelClient, ids: Sequence[str]) -> bool:
    """Return whether the server is done with all batches; ``False`` if it cannot be reached."""
    try:
        async with BatchApi(client) as api:
            return all([(await api.status(batch)).ended for batch in ids])
    except (ModelError, OSError):
        return False
