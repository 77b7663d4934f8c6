"""StepWork: some planned operators, in order, as one step runs them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import dagster as dg

from dagster_dataops.assets.assignments import Context
from dagster_dataops.assets.partitions import Parts
from dagster_dataops.assets.plan import AssetPlan
from dagster_dataops.assets.preview import Preview
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.schemas import config_of
from dagster_dataops.assets.step import StepEvent, run_step
from dagster_dataops.checkpoints.manifest import load_result
from dagster_dataops.datasets.dataset import JsonlDataset

Load: TypeAlias = Callable[[Context, DataOpsResource, dg.AssetKey], Any]


def load_published(context: Context, dataops: DataOpsResource, key: dg.AssetKey) -> Any:
    """Return what is published of an asset: a handle, or one a partition where the run has many.

    Raises:
        ResultMissingError: Nothing is.
    """

    def of(partition: str | None) -> JsonlDataset:
        return load_result(dataops.folder(key.path, partition))

    if context.has_partition_key:
        return of(str(context.partition_key))
    if context.has_partition_key_range:
        return Parts({name: of(name) for name in context.partition_keys})
    return of(None)


@dataclass(frozen=True)
class StepWork:
    """Operators of one step.

    Attributes:
        plans: Each after those it depends on.
        given: What the launch gave each of them, by node.
        loaded: What IO managers have loaded, by argument of the plans.
        load: Reads an upstream result that neither this step made nor an IO manager loaded.
    """

    plans: Sequence[AssetPlan]
    given: Mapping[str, Mapping[str, Any]]
    loaded: Mapping[str, Any] = field(default_factory=dict)
    load: Load = load_published

    def run(self, context: Context, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run what the step has selected, in order; yield the events of each as it finishes.

        What is upstream and not selected is read as it was published last. After an operator
        that ended without a result, those that take it are skipped, as Dagster skips steps.
        """
        made = dict(self.loaded)
        without: set[dg.AssetKey] = set()
        for plan in self._selected(context):
            config = config_of(plan.node, self.given.get(plan.node.name, {}))
            missing = [key for key, _ in plan.inputs if key in without]
            without.add(plan.spec.key)
            if missing and not config.limit:  # a preview takes previews
                _log_skipped(context, plan, missing)
                continue
            self._load(context, dataops, plan, made, only_results=not config.limit)
            for event in run_step(context, plan, config, dataops, made):
                if isinstance(event, dg.MaterializeResult):
                    made[f"input_{plan.node.name}"] = event.value
                    without.discard(plan.spec.key)
                yield event

    def _load(
        self,
        context: Context,
        dataops: DataOpsResource,
        plan: AssetPlan,
        made: dict[str, Any],
        *,
        only_results: bool,
    ) -> None:
        """Load what is not there yet; a preview does without the results of what was previewed."""
        for key, source in plan.inputs:
            if not isinstance(source, str) or source in made:
                continue
            if only_results or not _previewed(context, dataops, key):
                made[source] = self.load(context, dataops, key)

    def _selected(self, context: Context) -> list[AssetPlan]:
        if not isinstance(context, dg.AssetExecutionContext):
            return list(self.plans)
        selected = context.selected_asset_keys
        return [plan for plan in self.plans if plan.spec.key in selected]


def _log_skipped(context: Context, plan: AssetPlan, missing: Sequence[dg.AssetKey]) -> None:
    names = ", ".join(key.to_user_string() for key in missing)
    text = f"{plan.spec.key.to_user_string()} is skipped: there is no new result of {names}"
    context.log.info(text)


def _previewed(context: Context, dataops: DataOpsResource, key: dg.AssetKey) -> bool:
    partition = str(context.partition_key) if context.has_partition_key else None
    return bool(Preview(context, dataops, 1).before(key, partition))
