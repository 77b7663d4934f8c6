"""Results of declared checks over the published files of an asset, and the partitions to check."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import dagster as dg

from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.findings import Finding, check_result
from dagster_dataops.assets.checks.inspectors import inspect
from dagster_dataops.assets.inputs.partitions import ordered
from dagster_dataops.assets.inputs.path_pattern import PathPattern, SourceFile
from dagster_dataops.assets.inputs.source_files import exists, source_file
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder, load_result, published
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import StorageError


@dataclass(frozen=True, slots=True)
class CheckedAsset:
    """An asset with its declared checks.

    ``path`` is the file of an external asset, or the pattern of one file per partition;
    ``None`` for the result of an operator.
    """

    key: dg.AssetKey
    checks: Sequence[DeclaredCheck]
    partitions: dg.PartitionsDefinition[str] | None = None
    path: SourceFile | None = None


def declared_results(
    context: StepContext | dg.AssetCheckExecutionContext,
    asset: CheckedAsset,
    dataops: DataOpsResource,
) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of the selected checks of an asset.

    The partitions of the run are checked, or all of them.

    Raises:
        ResultMissingError: The asset has no published result.
        Failure: The asset has no partition yet.
    """
    wanted = _selected(context, asset.key) if asset.checks else ()
    checks = [check for check in asset.checks if check.name in wanted]
    if not checks:
        return
    findings: list[list[Finding]] = [[] for _ in checks]
    for partition in partitions_to_check(context, asset, dataops):
        dataset, manifest = _file_of(asset, dataops, partition)
        inspectors = [check.inspector() for check in checks]
        inspected = inspect(dataset, manifest, inspectors)
        found_here = [inspector(inspected) for inspector in inspectors]
        for place, finding in zip(findings, found_here, strict=True):
            place.append(replace(finding, partition=partition))
        if asset.path is None and manifest is not None:
            folder = dataops.folder(asset.key.path, partition)
            _note(folder, manifest, zip(checks, found_here, strict=True))
    for check, found_in in zip(checks, findings, strict=True):
        key = dg.AssetCheckKey(asset.key, check.name)
        yield check_result(key, check.severity, found_in)


def partitions_to_check(
    context: StepContext | dg.AssetCheckExecutionContext,
    asset: CheckedAsset,
    dataops: DataOpsResource,
) -> Sequence[str | None]:
    """Return the partitions of the run, or all existing ones if the run has no partitions.

    Arguments as for `declared_results`. An asset without partitions gives ``[None]``.

    Raises:
        Failure: No partition exists yet.
    """
    partitions = asset.partitions
    if partitions is None:
        return [None]
    op = context if isinstance(context, dg.OpExecutionContext) else context.op_execution_context
    if op.has_partition_key or op.has_partition_key_range:
        return list(ordered(op.partition_keys, partitions))
    known = partitions.get_partition_keys(dynamic_partitions_store=context.instance)
    if isinstance(asset.path, PathPattern):
        there = {name for name in known if exists(source_file(asset.path, name, dataops))}
    else:
        there = context.instance.get_materialized_partitions(asset.key) & set(known)
    if not there:
        text = f"there is no partition of {asset.key.to_user_string()} yet"
        raise dg.Failure(text, allow_retries=False)
    return list(ordered(there, partitions))


def _selected(context: StepContext | dg.AssetCheckExecutionContext, key: dg.AssetKey) -> set[str]:
    if isinstance(context, dg.OpExecutionContext):  # an op has no asset checks
        return set()
    return {check.name for check in context.selected_asset_check_keys if check.asset_key == key}


def _note(
    folder: NodeFolder, manifest: Manifest, findings: Iterable[tuple[DeclaredCheck, Finding]]
) -> None:
    """Write the outcomes beside the result; the dataset card of an export lists them."""
    from dagster_dataops.checkpoints.folder.check_outcomes import CheckOutcome, note_outcomes

    if folder.bucket is not None:
        return
    outcomes = {
        check.name: CheckOutcome(check.severity.value, finding.passed)
        for check, finding in findings
    }
    with suppress(StorageError):  # the folder may be read-only; the check needs no file
        note_outcomes(folder.result, manifest.fingerprint, outcomes)


def _file_of(
    asset: CheckedAsset, dataops: DataOpsResource, partition: str | None
) -> tuple[JsonlDataset, Manifest | None]:
    if asset.path is not None:
        return JsonlDataset.at(source_file(asset.path, partition, dataops)), None
    folder: NodeFolder = dataops.folder(asset.key.path, partition)
    return published(folder, whole=False) or (load_result(folder), None)
