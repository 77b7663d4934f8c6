"""StepWork: the planned operators of one step, run in order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import dagster as dg

from dagster_dataops.assets.checks.check_results import declared_results, partitions_to_check
from dagster_dataops.assets.checks.error_rate import RunResult, error_rate_results, is_selected
from dagster_dataops.assets.checks.missing_columns import missing_columns_results
from dagster_dataops.assets.inputs.partitions import ResultsByPartition
from dagster_dataops.assets.planning.asset_plan import AssetPlan
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, StepEvent, selects
from dagster_dataops.assets.runtime.termination import ended_by_interrupts
from dagster_dataops.assets.steps.preview_step import earlier_preview
from dagster_dataops.assets.steps.run_step import run_step
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, result_by_range
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import ResultMissingError

_BLOCKED: Final = "a blocking check upstream failed"
_NO_RESULT: Final = "there is no new result upstream"


@dataclass
class StepWork:
    """The operators of one step."""

    plans: Sequence[AssetPlan]
    configs: Mapping[str, Mapping[str, Any]]
    loaded: Mapping[str, Any] = field(default_factory=dict)

    def run(self, context: StepContext, dataops: DataOpsResource) -> Iterator[StepEvent]:
        """Run the selected operators in order and yield the events of each as it finishes.

        For an upstream operator that is not selected, the last published result is read. As in
        Dagster between steps, an operator is skipped if an upstream result was not made or a
        blocking check upstream failed. A preview reads upstream previews.

        Raises:
            Failure: A blocking check failed in an op; in the step of an asset, Dagster raises the
                error. Or the run is being terminated, and the step has a retry policy.
        """
        self._context, self._dataops = context, dataops
        self._values = dict(self.loaded)  # inputs and results, by argument of the plans
        self._held: dict[dg.AssetKey, str] = {}  # why operators downstream of an asset are skipped
        with ended_by_interrupts(context):
            for plan in self.plans:
                yield from self._events_of(plan)
        if _BLOCKED in self._held.values() and not isinstance(context, dg.AssetExecutionContext):
            raise dg.Failure("a blocking check failed", allow_retries=False)

    def _events_of(self, plan: AssetPlan) -> Iterator[StepEvent]:
        if not any(selects(self._context, key) for key in plan.arguments):
            yield from self._check_alone(plan)
            yield from self._declared(plan)
        elif reason := self._why_held(plan):
            self._held |= dict.fromkeys(plan.arguments, reason)
            text = f"{plan.node.name} is skipped: {reason}"
            self._context.log.warning(text)
        else:
            yield from self._run_one(plan)

    def _why_held(self, plan: AssetPlan) -> str | None:
        """Return the reason to skip an operator because of an upstream one, or ``None``."""
        held = self._held
        reasons = {held[dep.asset_key] for dep in plan.spec.deps if dep.asset_key in held}
        config = self.configs.get(plan.node.name, {})
        if config.get("limit") or config.get("try"):  # they need no new result
            reasons.discard(_NO_RESULT)
        return max(reasons, key=(_NO_RESULT, _BLOCKED).index, default=None)

    def _run_one(self, plan: AssetPlan) -> Iterator[StepEvent]:
        """Run one operator; skip the operators downstream if it has no result or a check blocks."""
        for event in self._results_of(plan):
            if _blocks(plan, event) and event.asset_key is not None:
                self._held[event.asset_key] = _BLOCKED
            yield event
        missing = {key for key, argument in plan.arguments.items() if argument not in self._values}
        self._held |= dict.fromkeys(missing, _NO_RESULT)

    def _results_of(self, plan: AssetPlan) -> Iterator[StepEvent]:
        config = self.configs.get(plan.node.name, {})
        for key, source in plan.inputs:
            if not isinstance(source, str) or source in self._values:
                continue
            if config.get("limit") and self._is_previewed(key):
                continue  # the preview reads that preview
            self._values[source] = self._published(key)
        for event in run_step(self._context, plan, config, self._dataops, self._values):
            if isinstance(event, dg.MaterializeResult) and event.asset_key is not None:
                self._values[plan.arguments[event.asset_key]] = event.value
            yield event
        # Checks read published results only.
        if not config.get("limit") and not self._values.keys().isdisjoint(plan.arguments.values()):
            yield from self._declared(plan)

    def _is_previewed(self, key: dg.AssetKey) -> bool:
        partition = str(self._context.partition_key) if self._context.has_partition_key else None
        return earlier_preview(self._context, self._dataops, key, partition) is not None

    def _published(self, key: dg.AssetKey) -> Any:
        """Return the published result of an asset: a handle, or one for each partition."""
        context = self._context
        if context.has_partition_key:
            return self._result(key, str(context.partition_key))
        if context.has_partition_key_range:
            return ResultsByPartition(
                {part: self._result(key, part) for part in context.partition_keys}
            )
        return self._result(key, None)

    def _result(self, key: dg.AssetKey, partition: str | None) -> JsonlDataset:
        return result_by_range(self._dataops.folder(key.path, partition))

    def _declared(self, plan: AssetPlan) -> Iterator[dg.AssetCheckResult]:
        for asset in plan.checked_assets:
            yield from declared_results(self._context, asset, self._dataops)

    def _check_alone(self, plan: AssetPlan) -> Iterator[dg.AssetCheckResult]:
        """Yield the results of the step's checks that are selected, over the published results."""
        context = self._context
        for asset in plan.checked_assets:
            failed = plan.error_rate_specs.get(asset.key)
            missing = plan.missing_columns_specs.get(asset.key)
            if not any(spec and is_selected(context, spec.key) for spec in (failed, missing)):
                continue
            partitions = partitions_to_check(context, asset, self._dataops)
            folders = [self._dataops.folder(asset.key.path, partition) for partition in partitions]
            results = list(map(_result_in, folders))
            yield from error_rate_results(context, failed, plan.error_rate, results, partitions)
            yield from missing_columns_results(context, missing, results, partitions)


def _blocks(plan: AssetPlan, event: StepEvent) -> bool:
    if not isinstance(event, dg.AssetCheckResult) or event.passed:
        return False
    if event.severity is not dg.AssetCheckSeverity.ERROR:
        return False
    check = (event.asset_key, event.check_name)
    return any(spec.blocking and (spec.asset_key, spec.name) == check for spec in plan.check_specs)


def _result_in(folder: NodeFolder) -> RunResult:
    manifest = Manifest.of(folder)
    if manifest is None:
        raise ResultMissingError(
            str(folder.located(folder.result)), "nothing was published there yet"
        )
    return manifest, manifest.error_file(folder)
