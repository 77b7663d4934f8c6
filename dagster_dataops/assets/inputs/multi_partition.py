"""Materialize the partitions of one step, each with its own folder and checkpoint."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import xxhash

from dagster_dataops.assets.inputs.partitions import ResultsByPartition, named, partitions_of
from dagster_dataops.assets.runtime.step_context import StepContext, is_direct, selects
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import PartitionsFailedError, RunStoppedError


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """The result of one partition, or of an asset without partitions."""

    dataset: JsonlDataset
    metadata: Mapping[str, Any]
    tags: Mapping[str, str] = field(default_factory=dict)


def materialize_all(
    context: StepContext,
    specs: Sequence[dg.AssetSpec],
    make: Callable[[str | None], Sequence[PartitionResult]],
) -> Iterator[dg.MaterializeResult[Any]]:
    """Materialize the partitions of the run and yield one result for all of them, for each asset.

    The assets are made together. Those that the run did not select are recorded as well, since
    their results are new, too.

    Several partitions are materialized one after another. If some fail, the others are still
    materialized and reported, and the step fails at the end.

    Dagster has one data version for all partitions of an output. It is a digest of all their
    contents, so every change shows. Each partition has its own metadata.

    ``make`` makes the results of one partition, one for each asset in order; its argument is
    ``None`` for unpartitioned assets.

    Raises:
        PartitionsFailedError: Some partitions failed; the others were reported to Dagster.
    """
    partitions = partitions_of(context, specs[0])
    failed: dict[str | None, Exception] = {}
    if len(partitions) == 1:
        results = {partitions[0]: make(partitions[0])}
    else:
        results, failed = _make_each(context, partitions, make)
    by_asset = [{key: each[at] for key, each in results.items()} for at in range(len(specs))]
    assets = list(zip(specs, by_asset, strict=True))
    for spec, parts in assets:
        if failed or not selects(context, spec.key):
            _record(context, spec, parts)
    if failed:
        raise _failure(specs[0], failed, len(results)) from next(iter(failed.values()))
    for spec, parts in assets:
        if selects(context, spec.key):
            yield _result_of(context, spec, parts)


def _make_each(
    context: StepContext,
    partitions: Sequence[str | None],
    make: Callable[[str | None], Sequence[PartitionResult]],
) -> tuple[dict[str | None, Sequence[PartitionResult]], dict[str | None, Exception]]:
    """Return the results of the partitions that were made, and the errors of the others."""
    results: dict[str | None, Sequence[PartitionResult]] = {}
    failed: dict[str | None, Exception] = {}
    for number, key in enumerate(partitions, 1):
        text = f"partition {key} ({number:,} of {len(partitions):,})"
        context.log.info(text)
        try:
            results[key] = make(key)
        except RunStoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - user code may raise anything; raised below
            text = f"partition {key} failed: {error}"
            context.log.warning(text)
            failed[key] = error
    return results, failed


def _result_of(
    context: StepContext, spec: dg.AssetSpec, results: Mapping[Any, PartitionResult]
) -> dg.MaterializeResult[Any]:
    if len(results) == 1:
        (result,) = results.values()
        return dg.MaterializeResult(
            asset_key=spec.key,
            value=result.dataset,
            metadata=result.metadata,
            data_version=dg.DataVersion(result.dataset.fingerprint or ""),
            tags=result.tags,
        )
    if isinstance(context, dg.AssetExecutionContext) and not is_direct(context):
        for key, result in results.items():
            context.add_asset_metadata(result.metadata, asset_key=spec.key, partition_key=key)
    return dg.MaterializeResult(
        asset_key=spec.key,
        value=ResultsByPartition({key: result.dataset for key, result in results.items()}),
        data_version=dg.DataVersion(_digest(results)),
    )


def _record(
    context: StepContext, spec: dg.AssetSpec, results: Mapping[Any, PartitionResult]
) -> None:
    """Record partitions without a result: the step failed on others, or the asset is unselected."""
    for key, result in results.items():
        tags = {**result.tags, "dagster/data_version": result.dataset.fingerprint or ""}
        if spec.code_version is not None:
            tags["dagster/code_version"] = spec.code_version
        context.log_event(
            dg.AssetMaterialization(
                asset_key=spec.key, partition=key, metadata=result.metadata, tags=tags
            )
        )


def _failure(
    spec: dg.AssetSpec, failed: Mapping[Any, Exception], count: int
) -> PartitionsFailedError:
    reasons = [f"{key} ({type(error).__name__}: {error})" for key, error in failed.items()]
    total = count + len(failed)
    return PartitionsFailedError(spec.key.to_user_string(), len(failed), total, named(reasons))


def _digest(results: Mapping[Any, PartitionResult]) -> str:
    text = "\n".join(
        f"{key}={result.dataset.fingerprint}" for key, result in sorted(results.items())
    )
    return f"xxh3:{xxhash.xxh3_128_hexdigest(text.encode(errors='surrogatepass'))}"
