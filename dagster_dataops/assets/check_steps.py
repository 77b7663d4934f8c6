"""build_operator_checks: the declared checks of a pipeline, a step for each asset that has some."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import dagster as dg

from dagster_dataops.assets.check_partitions import partitions_to_check
from dagster_dataops.assets.declared import DeclaredCheck
from dagster_dataops.assets.error_rate import FAILED_RECORDS, check_nodes
from dagster_dataops.assets.findings import Finding, check_result
from dagster_dataops.assets.options import AssetOptions
from dagster_dataops.assets.patterns import PathPattern
from dagster_dataops.assets.pipeline_plan import PlannedPipeline, plan_pipeline
from dagster_dataops.assets.resource import DataOpsResource
from dagster_dataops.assets.sources import Source
from dagster_dataops.assets.translator import DataOpsTranslator
from dagster_dataops.assets.watches import inspect
from dagster_dataops.checkpoints.manifest import Manifest, NodeFolder, load_result, published
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import PipelineDefinitionError
from dagster_dataops.graph.graph import SOURCE, OperatorGraph
from dagster_dataops.services.pipeline import Pipeline

Checks: TypeAlias = Mapping[str, Sequence[DeclaredCheck]]


@dataclass(frozen=True, slots=True)
class CheckedAsset:
    """An asset with declared checks.

    Attributes:
        key: Its key.
        checks: At least one.
        partitions: Its partitions, if it has any.
        path: Its file, where it is not a result of ours, or a pattern for a file each partition.
    """

    key: dg.AssetKey
    checks: Sequence[DeclaredCheck]
    partitions: dg.PartitionsDefinition[str] | None = None
    path: Path | PathPattern | None = None


def build_operator_checks(
    ppl: Pipeline,
    *,
    source: Source,
    checks: Checks,
    translator: DataOpsTranslator | None = None,
    options: AssetOptions | None = None,
) -> list[dg.AssetChecksDefinition]:
    """Return the declared checks as Dagster's; `build_definitions` adds them by itself.

    Args:
        ppl: A complete pipeline.
        source: As for `build_definitions`.
        checks: By node; by ``source`` for the source, if it is a file or a function.
        translator: The one that the assets were made with.
        options: What they were made with of partitions.

    Raises:
        PipelineDefinitionError: A node is unknown, or two of its checks have the same name.
    """
    if not checks:
        return []
    planned = plan_pipeline(ppl, source=source, dataops_translator=translator, options=options)
    return check_steps(planned, checks)


def check_steps(planned: PlannedPipeline, checks: Checks) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a planned pipeline; arguments and errors as `build_operator_checks`."""
    graph = planned.graph
    check_nodes(graph, checks, "checks", SOURCE)
    for node, declared in checks.items():
        _check_names(graph.name, node, [check.name for check in declared])
    assets = [
        CheckedAsset(plan.spec.key, checks.get(plan.node.name, ()), plan.spec.partitions_def)
        for plan in planned.plans
    ]
    if SOURCE in checks:
        assets.insert(0, _checked_source(planned, checks[SOURCE]))
    return [_check_step(asset) for asset in assets if asset.checks]


def refuse_within_one_step(graph: OperatorGraph, checks: Checks) -> None:
    """Refuse checks that cannot hold up what is downstream, since that is in the same step.

    Raises:
        PipelineDefinitionError: There is one.
    """
    taken = {name for node in graph.nodes.values() for name in node.inputs} - {SOURCE}
    for node in taken & set(checks):
        for check in checks[node]:
            if check.blocking:
                reason = (
                    f"the blocking check {check.name!r} of node {node!r} runs after its step, and "
                    "in layout='single_step' that runs what is downstream as well; use "
                    "layout='steps', or max_error_rate, which holds it up in both"
                )
                raise PipelineDefinitionError(graph.name, reason)


def _check_names(pipeline: str, node: str, names: Sequence[str]) -> None:
    for name in names:
        if name == FAILED_RECORDS or names.count(name) > 1:
            reason = f"node {node!r} has two checks {name!r}; give one of them another name="
            raise PipelineDefinitionError(pipeline, reason)


def _checked_source(planned: PlannedPipeline, checks: Sequence[DeclaredCheck]) -> CheckedAsset:
    origin = planned.origin
    if origin.path is None and not isinstance(origin.definition, dg.AssetsDefinition):
        reason = "the source is an asset of others; declare its checks where it is defined"
        raise PipelineDefinitionError(planned.graph.name, reason)
    return CheckedAsset(origin.key, checks, planned.options.partitions, origin.path)


def _check_step(asset: CheckedAsset) -> dg.AssetChecksDefinition:
    @dg.multi_asset_check(
        name=f"{asset.key.to_python_identifier()}__checks",
        description=f"Looks at {asset.key.to_user_string()} as it was published.",
        specs=[check.spec(asset.key) for check in asset.checks],
        can_subset=True,
    )
    def _check(
        context: dg.AssetCheckExecutionContext, dataops: DataOpsResource
    ) -> Iterator[dg.AssetCheckResult]:
        wanted = {key.name for key in context.selected_asset_check_keys}
        checks = [check for check in asset.checks if check.name in wanted]
        findings: list[list[Finding]] = [[] for _ in checks]
        for partition in partitions_to_check(context, asset.key, asset.partitions, asset.path):
            dataset, manifest = _file_of(asset, dataops, partition)
            for place, found in zip(findings, _findings(checks, dataset, manifest), strict=True):
                place.append(replace(found, partition=partition))
        for check, found_in in zip(checks, findings, strict=True):
            key = dg.AssetCheckKey(asset.key, check.name)
            yield check_result(key, check.severity, found_in)

    return _check


def _findings(
    checks: Sequence[DeclaredCheck], dataset: JsonlDataset, manifest: Manifest | None
) -> list[Finding]:
    watches = [check.watch() for check in checks]
    inspected = inspect(dataset, manifest, watches)
    return [watch.finding(inspected) for watch in watches]


def _file_of(
    asset: CheckedAsset, dataops: DataOpsResource, partition: str | None
) -> tuple[JsonlDataset, Manifest | None]:
    path = asset.path
    if isinstance(path, PathPattern):
        path = path.path(partition or "")
    if path is not None:
        return JsonlDataset.of_file(path), None
    folder: NodeFolder = dataops.folder(asset.key.path, partition)
    return published(folder) or (load_result(folder), None)
