"""`AwaitedRun`: the run of a node that waited, and of the nodes downstream; its sensor."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import dagster as dg

from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.steps.planned_pipeline import PlannedPipeline

_MOST_RUNS: Final = 5  # that try to collect the same
_SECONDS: Final = 60  # between two evaluations of a sensor


class AwaitedRun(NamedTuple):
    """The run that collects what a node waited for.

    Attributes:
        tag: The name of the tag by which its runs are known.
        plan: The node.
        partition: The partition, if it has any.
        awaited: A text that names what is collected.
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


def downstream(planned: PlannedPipeline, plan: AssetPlan) -> list[dg.AssetKey]:
    """Return the assets of a node and of those downstream with the same partitions."""
    keys = [spec.key for spec in plan.specs]
    for other in planned.plans:  # each comes after its inputs
        same = other.spec.partitions_def == plan.spec.partitions_def
        if other is not plan and same and any(key in keys for key, _ in other.inputs):
            keys += [spec.key for spec in other.specs]
    return keys


def awaiting_sensor(
    planned: PlannedPipeline,
    name: str,
    targets: Mapping[dg.AssetKey, Sequence[dg.AssetKey]],
    look: Callable[[dg.SensorEvaluationContext], dg.SensorResult | dg.SkipReason],
    description: str,
) -> dg.SensorDefinition:
    """Return the sensor ``<pipeline>_<name>``, which is on by default.

    Args:
        planned: The pipeline.
        name: The last part of the name.
        targets: The assets that a run of each waiting node makes.
        look: Evaluates the sensor.
        description: What it does.
    """
    return dg.SensorDefinition(
        name=f"{planned.title}_{name}",
        evaluation_fn=look,
        asset_selection=dg.AssetSelection.assets(
            *{key for keys in targets.values() for key in keys}
        ),
        minimum_interval_seconds=_SECONDS,
        description=description,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={planned.resource_key},
    )
