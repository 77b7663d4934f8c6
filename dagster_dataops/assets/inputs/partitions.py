"""Partitions of a step: their keys and order, and the parts of the inputs that belong to each.

Static partitions are ordered as defined, time windows by time, dynamic partitions by key. The order
in which dynamic partitions were added has no effect.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from dagster_dataops.assets.inputs.path_pattern import PathPattern, dimensions_of
from dagster_dataops.assets.inputs.source_files import exists, source_file
from dagster_dataops.assets.runtime.resource import DataOpsResource
from dagster_dataops.assets.runtime.step_context import StepContext, is_direct
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.quantities import counted


class ResultsByPartition(dict[str, Any]):
    """Results by partition key, for an asset downstream with the same partitions."""


def partitions_of(context: StepContext, spec: dg.AssetSpec) -> list[str | None]:
    """Return the partitions that a step makes, in order; ``[None]`` for an unpartitioned asset.

    An asset may be unpartitioned in a run that has partitions.

    Raises:
        Failure: The asset is partitioned, and the run has no partition.
    """
    definition = spec.partitions_def
    if definition is None:
        return [None]
    if context.has_partition_key:
        return [context.partition_key]
    if context.has_partition_key_range:
        return [*ordered(context.partition_keys, definition)]
    text = f"{spec.key.to_user_string()} is partitioned: launch it with a partition"
    raise dg.Failure(text, allow_retries=False)


def ordered(keys: Iterable[str], definition: dg.PartitionsDefinition) -> list[str]:
    """Return partition keys in their order."""
    if isinstance(definition, dg.StaticPartitionsDefinition):
        wanted = set(keys)
        return [key for key in definition.get_partition_keys() if key in wanted]
    if isinstance(definition, dg.TimeWindowPartitionsDefinition):
        return sorted(keys, key=lambda key: definition.time_window_for_partition_key(key).start)
    if isinstance(definition, dg.MultiPartitionsDefinition):
        return _ordered_by_dimension(keys, definition)
    return sorted(keys)


def _ordered_by_dimension(
    keys: Iterable[str], definition: dg.MultiPartitionsDefinition
) -> list[str]:
    by_dimension = {key: dimensions_of(key, definition) for key in keys}
    ranks: dict[str, Mapping[str, int]] = {}
    for dimension in definition.partitions_defs:
        names = {values[dimension.name] for values in by_dimension.values()}
        places = enumerate(ordered(names, dimension.partitions_def))
        ranks[dimension.name] = {key: place for place, key in places}

    def rank(key: str) -> list[int]:
        return [places[by_dimension[key][name]] for name, places in ranks.items()]

    return sorted(by_dimension, key=rank)


def loaded_parts(
    context: StepContext, spec: dg.AssetSpec, argument: str, value: object, partition: str | None
) -> list[object]:
    """Return the parts of a loaded input for one partition, in the order of their partitions.

    ``value`` is what the IO manager loaded for an argument: one result, or a dict by partition
    key.

    Raises:
        InputError: The input has no part for this partition.
    """
    if isinstance(value, ResultsByPartition):
        return [*value.values()] if partition is None else [value[partition]]
    if is_direct(context):
        return _given_parts(value, partition, several=context.has_partition_key_range)
    upstream = _partitions_of_input(context, argument, value)
    if upstream is None or not isinstance(value, Mapping):
        return [value]
    if partition is None or not context.has_partition_key_range:
        return [value[key] for key in ordered(value, upstream)]
    wanted = _mapped(context, spec.partitions_def, argument, partition, upstream)
    missing = [key for key in wanted if key not in value]
    if missing or not wanted:
        asset = context.asset_key_for_input(argument).to_user_string()
        reason = f"has nothing for partition {partition!r}; it has {named(list(value))}"
        raise InputError(f"{asset}", reason)
    return [value[key] for key in wanted]


def _given_parts(value: object, partition: str | None, *, several: bool) -> list[object]:
    """Return the parts of an input that a direct call passes: one, or a dict of handles by key."""
    if not isinstance(value, Mapping) or not value:
        return [value]
    if not all(isinstance(part, JsonlDataset) for part in value.values()):
        return [value]
    return [value[partition]] if several and partition in value else list(value.values())


def _partitions_of_input(
    context: StepContext, argument: str, value: object
) -> dg.PartitionsDefinition | None:
    """Return the partitions of an input if ``value`` is a dict by key, not one stored record."""
    if not isinstance(value, Mapping):
        return None
    try:
        upstream = context.asset_partitions_def_for_input(argument)
    except dg.DagsterInvariantViolationError:  # not partitioned
        return None
    known = set(context.asset_partition_keys_for_input(argument))
    return upstream if value.keys() <= known else None


def _mapped(
    context: StepContext,
    partitions: dg.PartitionsDefinition | None,
    argument: str,
    partition: str,
    upstream: dg.PartitionsDefinition,
) -> Sequence[str]:
    """Return the upstream partitions that Dagster maps one partition to."""
    key = context.asset_key_for_input(argument)
    mapping = context.assets_def.get_partition_mapping(key)
    windows = isinstance(upstream, dg.TimeWindowPartitionsDefinition)
    if mapping is None and windows and partitions != upstream:
        mapping = dg.TimeWindowPartitionMapping()
    if mapping is None or partitions is None:
        return [partition]
    with dg.partition_loading_context(dynamic_partitions_store=context.instance):
        subset = partitions.empty_subset().with_partition_keys([partition])
        mapped = mapping.get_upstream_mapped_partitions_result_for_partitions(
            subset, partitions, upstream
        )
        return ordered(mapped.partitions_subset.get_partition_keys(), upstream)


def pattern_paths(
    context: StepContext, pattern: PathPattern, dataops: DataOpsResource
) -> list[Location]:
    """Return the files of all partitions in their order.

    Raises:
        InputError: Files are missing, and the pattern does not allow that.
    """
    definition = pattern.partitions
    keys = definition.get_partition_keys(dynamic_partitions_store=context.instance)
    paths = [source_file(pattern, key, dataops) for key in ordered(keys, definition)]
    missing = [path for path in paths if not exists(path)]
    if missing and not pattern.allow_missing:
        reason = (
            f"{len(missing):,} of {counted(len(paths), 'partitions')} have no file: "
            f"{named([str(path) for path in missing])}. Put them there, or build the "
            "assets with allow_missing_partitions=True"
        )
        raise InputError(str(pattern), reason)
    return [path for path in paths if path not in set(missing)]


def named(keys: Sequence[str], most: int = 10) -> str:
    """Return the first ``most`` keys as text, with the number of the others."""
    more = f" and {len(keys) - most:,} more" if len(keys) > most else ""
    return f"{', '.join(keys[:most])}{more}" if keys else "none"
