"""`awaiting_sensor`: launch a run of a node, and of the nodes downstream, when its wait is over."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import dagster as dg

from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource, resource_of
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline

_SECONDS: Final = 60
_MOST_RUNS: Final = 5  # that try to collect the same


class AwaitedRun(NamedTuple):
    """The run that collects what a node waited for.

    Its runs are known by a tag with the name ``tag`` and a digest of ``awaited``, a text that
    names what is collected.
    """

    tag: str
    plan: AssetPlan
    partition: str | None
    awaited: str

    def request(
        self, context: dg.SensorEvaluationContext, keys: Sequence[dg.AssetKey]
    ) -> dg.RunRequest | None:
        """Return the request of the run; ``None`` if one is under way, or several have failed."""
        text = f"{self.plan.spec.key.to_user_string()} {self.partition} {self.awaited}"
        digest = hashlib.blake2b(text.encode(), digest_size=10).hexdigest()
        runs = context.instance.get_runs(filters=dg.RunsFilter(tags={self.tag: digest}))
        if len(runs) >= _MOST_RUNS or any(not run.is_finished for run in runs):
            return None
        return dg.RunRequest(
            run_key=f"{digest}:{len(runs)}",
            asset_selection=list(keys),
            partition_key=self.partition,
            tags={self.tag: digest},
        )


Look: TypeAlias = Callable[
    [dg.SensorEvaluationContext, Sequence[AssetPlan], DataOpsResource],
    Iterator[tuple[AwaitedRun, int]],
]
"""Yields the run of each node that waits, and the number of open items; 0 if the wait is over."""


def awaiting_sensor(
    planned: PlannedPipeline,
    plans: Sequence[AssetPlan],
    name: str,
    look: Look,
    *,
    description: str,
    skipped: Callable[[int], str],
) -> dg.SensorDefinition:
    """Return the sensor that launches a run of each node whose wait is over.

    ``look`` finds the nodes that wait. ``skipped`` returns why no run is launched, given the
    number of open items. ``name`` follows that of the pipeline in the name of the sensor.
    """
    targets = {plan.spec.key: _downstream(planned, plan) for plan in plans}
    selected = {key for keys in targets.values() for key in keys}

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        requests, left = [], 0
        for run, still_open in look(context, plans, resource_of(context, planned.resource_key)):
            if still_open:
                left += still_open
            elif request := run.request(context, targets[run.plan.spec.key]):
                requests.append(request)
        return dg.SensorResult(run_requests=requests) if requests else dg.SkipReason(skipped(left))

    return dg.SensorDefinition(
        name=f"{planned.title}_{name}",
        evaluation_fn=evaluate,
        asset_selection=dg.AssetSelection.assets(*selected),
        minimum_interval_seconds=_SECONDS,
        description=description,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={planned.resource_key},
    )


def parts_of(
    context: dg.SensorEvaluationContext, plans: Sequence[AssetPlan]
) -> Iterator[tuple[AssetPlan, str | None]]:
    """Yield each node with each of its partitions, with ``None`` if it has none."""
    for plan in plans:
        partitions_def = plan.spec.partitions_def
        keys: Sequence[str | None] = [None]
        if partitions_def is not None:
            keys = partitions_def.get_partition_keys(dynamic_partitions_store=context.instance)
        for key in keys:
            yield plan, key


def _downstream(planned: PlannedPipeline, plan: AssetPlan) -> list[dg.AssetKey]:
    """Return the assets of a node and of those downstream with the same partitions."""
    keys = [spec.key for spec in plan.specs]
    for other in planned.plans:  # each comes after its inputs
        same = other.spec.partitions_def == plan.spec.partitions_def
        if other is not plan and same and any(key in keys for key, _ in other.inputs):
            keys += [spec.key for spec in other.specs]
    return keys
