"""StepWork: the planned operators of one step, run in order."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import dagster as dg

from dagster_dataops.assets.checks.check_results import declared_results
from dagster_dataops.assets.checks.checked_partitions import partitions_to_check
from dagster_dataops.assets.checks.error_rate import RunResult, error_rate_results, is_selected
from dagster_dataops.assets.inputs.partitions import ResultsByPartition
from dagster_dataops.assets.launchpad.config_schema import config_of
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, StepEvent
from dagster_dataops.assets.steps.preview_step import earlier_preview
from dagster_dataops.assets.steps.run_step import run_step
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, load_result
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import ResultMissingError

_BLOCKED: Final = "a blocking check upstream failed"
_NO_RESULT: Final = "there is no new result upstream"

Load: TypeAlias = Callable[[StepContext, DataOpsResource, dg.AssetKey], Any]


def load_published(context: StepContext, dataops: DataOpsResource, key: dg.AssetKey) -> Any:
    """Return the published result of an asset: one handle, or one for each partition of the run.

    Raises:
        ResultMissingError: A result was not published.
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
    """The operators of one step.

    Attributes:
        plans: The plans in order of their dependencies.
        given: The launch config by node.
        loaded: Inputs that IO managers loaded, by argument of the plans.
        load: Loads an upstream result that was neither made by this step nor loaded by an IO
            manager.
    """

    plans: Sequence[AssetPlan]
    given: Mapping[str, Mapping[str, Any]]
    loaded: Mapping[str, Any] = field(default_factory=dict)
    load: Load = load_published

    def run(self, context: StepContext, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run the selected operators in order and yield the events of each as it finishes.

        For an upstream operator that is not selected, the last published result is read. As in
        Dagster between steps, an operator is skipped if an upstream result was not made or a
        blocking check upstream failed. A preview reads upstream previews.

        Raises:
            Failure: A blocking check failed in an op. In the step of an asset, Dagster raises the
                error.
        """
        made = dict(self.loaded)
        held: dict[dg.AssetKey, str] = {}
        for plan in self.plans:
            keys = plan.arguments
            if not _is_selected(context, plan):
                yield from check_alone(context, plan, dataops)
                yield from _declared(context, plan, dataops)
            elif reason := self._why_held(plan, held):
                held |= dict.fromkeys(keys, reason)
                text = f"{plan.node.name} is skipped: {reason}"
                context.log.warning(text)
            else:
                for event in self._run_one(context, dataops, plan, made):
                    if _blocks(plan, event) and event.asset_key is not None:
                        held[event.asset_key] = _BLOCKED
                    yield event
                held |= {key: _NO_RESULT for key, argument in keys.items() if argument not in made}
        if _BLOCKED in held.values() and not isinstance(context, dg.AssetExecutionContext):
            raise dg.Failure("a blocking check failed", allow_retries=False)

    def _why_held(self, plan: AssetPlan, held: Mapping[dg.AssetKey, str]) -> str | None:
        """Return the reason to skip an operator because of an upstream one, or ``None``."""
        reasons = {held[dep.asset_key] for dep in plan.spec.deps if dep.asset_key in held}
        if self.given.get(plan.node.name, {}).get("limit"):
            reasons.discard(_NO_RESULT)
        return max(reasons, key=(_NO_RESULT, _BLOCKED).index, default=None)

    def _run_one(
        self,
        context: StepContext,
        dataops: DataOpsResource,
        plan: AssetPlan,
        made: dict[str, Any],
    ) -> Iterator[StepEvent]:
        """Run one operator over the results in ``made``, and add its result there."""
        given = self.given.get(plan.node.name, {})
        config = config_of(plan.node, plan.config_schema, given)
        for key, source in plan.inputs:
            if not isinstance(source, str) or source in made:
                continue
            if config.limit and _previewed(context, dataops, key):
                continue  # the preview reads that preview
            made[source] = self.load(context, dataops, key)
        for event in run_step(context, plan, config, dataops, made):
            if isinstance(event, dg.MaterializeResult) and event.asset_key is not None:
                made[plan.arguments[event.asset_key]] = event.value
            yield event
        # Checks read published results only.
        if not config.limit and not made.keys().isdisjoint(plan.arguments.values()):
            yield from _declared(context, plan, dataops)


def _declared(
    context: StepContext, plan: AssetPlan, dataops: DataOpsResource
) -> Iterator[dg.AssetCheckResult]:
    for asset in plan.checked_assets:
        yield from declared_results(context, asset, dataops)


def _blocks(plan: AssetPlan, event: StepEvent) -> bool:
    if not isinstance(event, dg.AssetCheckResult) or event.passed:
        return False
    if event.severity is not dg.AssetCheckSeverity.ERROR:
        return False
    return any(spec.blocking and spec.name == event.check_name for spec in plan.check_specs)


def _is_selected(context: StepContext, plan: AssetPlan) -> bool:
    if not isinstance(context, dg.AssetExecutionContext):
        return True
    return not context.selected_asset_keys.isdisjoint(plan.arguments)


def _previewed(context: StepContext, dataops: DataOpsResource, key: dg.AssetKey) -> bool:
    partition = str(context.partition_key) if context.has_partition_key else None
    return earlier_preview(context, dataops, key, partition) is not None


def check_alone(
    context: StepContext, plan: AssetPlan, dataops: DataOpsResource
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of the check over each published result, if the check is selected.

    Raises:
        ResultMissingError: Nothing was published.
    """
    for spec in plan.specs:
        key = spec.key
        if plan.error_rate is None or not is_selected(context, key):
            continue
        partitions = partitions_to_check(context, key, spec.partitions_def)
        found = [_result_in(dataops.folder(key.path, partition)) for partition in partitions]
        yield from error_rate_results(context, key, plan.error_rate, found)


def _result_in(folder: NodeFolder) -> RunResult:
    manifest = Manifest.load(folder.manifest)
    if manifest is None:
        raise ResultMissingError(str(folder.result), "nothing was published there yet")
    return manifest, manifest.error_file(folder)
