"""batches_sensor: launch a run when the server has answered the batches of a node."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.automation.awaited_runs import (
    AwaitedRun,
    awaiting_sensor,
    downstream,
    parts_of,
)
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource, resource_of
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline
from dagster_dataops.errors import ModelError
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.models.batches.batch_api import BatchApi
from dagster_dataops.models.batches.batch_delivery import BatchState
from dagster_dataops.models.calls.client import ModelClient
from dagster_dataops.models.llm_operator import LLMOperator
from dagster_dataops.models.model_operator import client_among

_TAG: Final = "dagster_dataops/batches"


@dataclass(frozen=True)
class _Batches:
    """Batches of a node that are submitted and not collected.

    Attributes:
        plan: The node.
        partition: The partition, if it has any.
        ids: The ids of the batches; empty if some were not submitted before the run died.
    """

    plan: AssetPlan
    partition: str | None
    ids: Sequence[str]

    @property
    def awaited(self) -> AwaitedRun:
        """The run that collects them."""
        return AwaitedRun(_TAG, self.plan, self.partition, f"{sorted(self.ids)}")


def batches_sensors(planned: PlannedPipeline) -> list[dg.SensorDefinition]:
    """Return the sensor ``<pipeline>_batches``; none if no node needs it.

    Nodes with ``delivery="batch"`` and ``wait="sensor"`` need it. It asks the server about batches
    that are submitted and not collected. When all of a node are answered, it launches a run of the
    node and of all nodes downstream; not if the user cancelled one of them.
    """
    plans = [plan for plan in planned.plans if _delivers_batches(plan)]
    if not plans:
        return []
    targets = {plan.spec.key: downstream(planned, plan) for plan in plans}

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        dataops = resource_of(context, planned.resource_key)
        requests, open_ones = [], 0
        for batches in _waiting(context, plans, dataops):
            operator: Any = batches.plan.node.operator
            client = client_among(operator.client, dataops.clients)
            if not asyncio.run(_all_ended(client, batches.ids)):
                open_ones += 1
            elif request := batches.awaited.request(context, targets[batches.plan.spec.key]):
                requests.append(request)
        if requests:
            return dg.SensorResult(run_requests=requests)
        return dg.SkipReason(
            f"the server has not finished the batches of {counted(open_ones, 'results')}"
        )

    description = "Launches a run when the server has answered the batches of a node."
    return [awaiting_sensor(planned, "batches", targets, look, description)]


def _delivers_batches(plan: AssetPlan) -> bool:
    operator: Any = plan.node.operator
    batched = isinstance(operator, LLMOperator) and operator.delivery == "batch"
    return batched and operator.wait == "sensor"


def _waiting(
    context: dg.SensorEvaluationContext, plans: Sequence[AssetPlan], dataops: DataOpsResource
) -> Iterator[_Batches]:
    for plan, key in parts_of(context, plans):
        state = BatchState(plan.folder(dataops, key).path)
        if (state.waiting or state.interrupted) and not state.cancelled:
            yield _Batches(plan, key, [] if state.interrupted else state.waiting)


async def _all_ended(client: ModelClient, ids: Sequence[str]) -> bool:
    """Return whether the server is done with all batches; ``False`` if it cannot be reached."""
    try:
        async with BatchApi(client) as api:
            return all([(await api.status(batch)).ended for batch in ids])
    except (ModelError, OSError):
        return False
