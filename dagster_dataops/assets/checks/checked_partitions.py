"""The partitions of an asset that a check reads."""

from collections.abc import Callable, Sequence

import dagster as dg

from dagster_dataops.assets.inputs.partitions import ordered
from dagster_dataops.assets.runtime.step_context import StepContext


def partitions_to_check(
    context: StepContext | dg.AssetCheckExecutionContext,
    key: dg.AssetKey,
    partitions: dg.PartitionsDefinition | None,
    is_there: Callable[[str], bool] | None = None,
) -> Sequence[str | None]:
    """Return the partitions of the run, or all existing ones if the run has no partitions.

    Args:
        context: The context of the check's step.
        key: The key of the asset.
        partitions: The partitions of the asset; ``None`` gives ``[None]``, its only result.
        is_there: For an external asset, whether the file of a partition exists.

    Raises:
        Failure: No partition exists yet.
    """
    if partitions is None:
        return [None]
    op = context if isinstance(context, dg.OpExecutionContext) else context.op_execution_context
    if op.has_partition_key or op.has_partition_key_range:
        return list(ordered(op.partition_keys, partitions))
    known = partitions.get_partition_keys(dynamic_partitions_store=context.instance)
    if is_there is not None:
        there = set(filter(is_there, known))
    else:
        there = context.instance.get_materialized_partitions(key) & set(known)
    if not there:
        text = f"there is no partition of {key.to_user_string()} yet"
        raise dg.Failure(text, allow_retries=False)
    return list(ordered(there, partitions))
