"""One step, several partitions: one after the other, each with its own folder and checkpoint."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import xxhash

from dagster_dataops.assets.inputs.partitions import Parts, named
from dagster_dataops.assets.runtime.step_context import Context
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import PartitionsFailedError, RunStoppedError


@dataclass(frozen=True, slots=True)
class Made:
    """What a step has made of one partition.

    Attributes:
        dataset: The result.
        metadata: What the asset page shows of it.
        tags: Of the materialization.
    """

    dataset: JsonlDataset
    metadata: Mapping[str, Any]
    tags: Mapping[str, str] = field(default_factory=dict)


def make_several(
    context: Context,
    spec: dg.AssetSpec,
    partitions: Sequence[str],
    make: Callable[[str], Made],
) -> Iterator[dg.MaterializeResult[Any]]:
    """Make every partition, tell Dagster of each, and fail at the end if some failed.

    Dagster has one data version for all partitions of an output: here a digest of all their
    contents, so that no change can go unnoticed. Each partition has metadata of its own.

    Args:
        context: Of the step.
        spec: Of the asset.
        partitions: Which ones, in order.
        make: Makes one.

    Raises:
        PartitionsFailedError: Some failed; Dagster was told of the others.
    """
    made: dict[str, Made] = {}
    failed: dict[str, Exception] = {}
    for number, key in enumerate(partitions, 1):
        text = f"partition {key} ({number:,} of {len(partitions):,})"
        context.log.info(text)
        try:
            made[key] = make(key)
        except RunStoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - sources are the user's code; all are told below
            text = f"partition {key} failed: {error}"
            context.log.warning(text)
            failed[key] = error
    if failed:
        _record(context, spec, made)
        raise _failure(spec, failed, len(made)) from next(iter(failed.values()))
    if isinstance(context, dg.AssetExecutionContext):
        for key, one in made.items():
            context.add_asset_metadata(one.metadata, asset_key=spec.key, partition_key=key)
    yield dg.MaterializeResult(
        asset_key=spec.key,
        value=Parts({key: one.dataset for key, one in made.items()}),
        data_version=dg.DataVersion(_digest(made)),
    )


def _record(context: Context, spec: dg.AssetSpec, made: Mapping[str, Made]) -> None:
    """Record the partitions that were made; the step itself fails and yields none."""
    for key, one in made.items():
        tags = {**one.tags, "dagster/data_version": one.dataset.fingerprint or ""}
        if spec.code_version is not None:
            tags["dagster/code_version"] = spec.code_version
        context.log_event(
            dg.AssetMaterialization(
                asset_key=spec.key, partition=key, metadata=one.metadata, tags=tags
            )
        )


def _failure(
    spec: dg.AssetSpec, failed: Mapping[str, Exception], made: int
) -> PartitionsFailedError:
    reasons = [f"{key} ({type(error).__name__}: {error})" for key, error in failed.items()]
    total = made + len(failed)
    return PartitionsFailedError(spec.key.to_user_string(), len(failed), total, named(reasons))


def _digest(made: Mapping[str, Made]) -> str:
    text = "\n".join(f"{key}={one.dataset.fingerprint}" for key, one in sorted(made.items()))
    return f"xxh3:{xxhash.xxh3_128_hexdigest(text.encode(errors='surrogatepass'))}"
