"""Which partitions of an asset a check looks at."""

from collections.abc import Sequence

import dagster as dg

from dagster_dataops.assets.assignments import Context


def partitions_to_check(
    context: Context | dg.AssetCheckExecutionContext,
    key: dg.AssetKey,
    partitions: dg.PartitionsDefinition[str] | None,
) -> Sequence[str | None]:
    """Return the partitions that the run is about; all that there are, if it is about none.

    Args:
        context: Of the check's step.
        key: Of the asset.
        partitions: Its own; without any, what is checked is the one result that it has.

    Raises:
        Failure: None was materialized yet.
    """
    if partitions is None:
        return [None]
    op = context if isinstance(context, dg.OpExecutionContext) else context.op_execution_context
    if op.has_partition_key or op.has_partition_key_range:
        return list(op.partition_keys)
    found = context.instance.get_materialized_partitions(key)
    keys = partitions.get_partition_keys(dynamic_partitions_store=context.instance)
    there = [partition for partition in keys if partition in found]
    if not there:
        text = f"no partition of {key.to_user_string()} has been materialized yet"
        raise dg.Failure(text, allow_retries=False)
    return list(there)
