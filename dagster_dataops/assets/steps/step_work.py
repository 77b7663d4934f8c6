"""StepWork: some planned operators, in order, as one step runs them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.check_results import CheckedAsset, declared_results
from dagster_dataops.assets.inputs.partitions import ResultsByPartition
from dagster_dataops.assets.launchpad.config_schema import config_of
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.assets.steps.error_rate_step import check_alone
from dagster_dataops.assets.steps.preview_step import Preview
from dagster_dataops.assets.steps.run_step import StepEvent, run_step
from dagster_dataops.checkpoints.folder.manifest import load_result
from dagster_dataops.datasets.dataset import JsonlDataset

_BLOCKED: Final = "a blocking check upstream did not pass"
_NOT_MADE: Final = "there is no new result upstream"

Load: TypeAlias = Callable[[StepContext, DataOpsResource, dg.AssetKey], Any]


def load_published(context: StepContext, dataops: DataOpsResource, key: dg.AssetKey) -> Any:
    """Return what is published of an asset: a handle, or one a partition where the run has many.

    Raises:
        ResultMissingError: Nothing is.
    """

    def of(partition: str | None) -> JsonlDataset:
        return load_result(dataops.folder(key.path, partition))

    if context.has_partition_key:
        return of(str(context.partition_key))
    if context.has_partition_key_range:
        return ResultsByPartition({name: of(name) for name in context.partition_keys})
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

    def run(self, context: StepContext, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run what the step has selected, in order; yield the events of each as it finishes.

        What is upstream and not selected is read as it was published last. What takes a result
        that was not made, or is downstream of a blocking check that did not pass, is left out, as
        Dagster does with further steps. Previews take previews.

        Raises:
            Failure: There was such a check in an op; an asset's step Dagster itself fails.
        """
        made = dict(self.loaded)
        held: dict[dg.AssetKey, str] = {}
        for plan in self.plans:
            key = plan.spec.key
            if not _is_selected(context, plan):
                yield from check_alone(context, plan, dataops)
                yield from declared_results(context, _checked(plan), dataops)
            elif reason := self._why_held(plan, held):
                held[key] = reason
                text = f"{plan.node.name} is not run: {reason}"
                context.log.warning(text)
            else:
                for event in self._run_one(context, dataops, plan, made):
                    if _blocks(plan, event):
                        held[key] = _BLOCKED
                    yield event
                if f"input_{plan.node.name}" not in made:
                    held[key] = _NOT_MADE
        if _BLOCKED in held.values() and not isinstance(context, dg.AssetExecutionContext):
            raise dg.Failure("a blocking check did not pass", allow_retries=False)

    def _why_held(self, plan: AssetPlan, held: Mapping[dg.AssetKey, str]) -> str | None:
        """Return why an operator is not run after what became of those it depends on."""
        reasons = {held[dep.asset_key] for dep in plan.spec.deps if dep.asset_key in held}
        if self.given.get(plan.node.name, {}).get("limit"):
            reasons.discard(_NOT_MADE)
        return max(reasons, key=(_NOT_MADE, _BLOCKED).index, default=None)

    def _run_one(
        self,
        context: StepContext,
        dataops: DataOpsResource,
        plan: AssetPlan,
        made: dict[str, Any],
    ) -> Iterator[StepEvent]:
        """Run one operator over what is in ``made``, and add its result."""
        given = self.given.get(plan.node.name, {})
        config = config_of(plan.node, plan.config_schema, given)
        for key, source in plan.inputs:
            if not isinstance(source, str) or source in made:
                continue
            if config.limit and _previewed(context, dataops, key):
                continue  # the preview takes that
            made[source] = self.load(context, dataops, key)
        for event in run_step(context, plan, config, dataops, made):
            if isinstance(event, dg.MaterializeResult):
                made[f"input_{plan.node.name}"] = event.value
            yield event
        if not config.limit:  # a preview is not what is published
            yield from declared_results(context, _checked(plan), dataops)


def _checked(plan: AssetPlan) -> CheckedAsset:
    return CheckedAsset(plan.spec.key, plan.checks, plan.spec.partitions_def)


def _blocks(plan: AssetPlan, event: StepEvent) -> bool:
    if not isinstance(event, dg.AssetCheckResult) or event.passed:
        return False
    if event.severity is not dg.AssetCheckSeverity.ERROR:
        return False
    return any(spec.blocking and spec.name == event.check_name for spec in plan.check_specs)


def _is_selected(context: StepContext, plan: AssetPlan) -> bool:
    if not isinstance(context, dg.AssetExecutionContext):
        return True
    return plan.spec.key in context.selected_asset_keys


def _previewed(context: StepContext, dataops: DataOpsResource, key: dg.AssetKey) -> bool:
    partition = str(context.partition_key) if context.has_partition_key else None
    return bool(Preview(context, dataops, 1).before(key, partition))
