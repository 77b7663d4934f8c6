"""Shards of a stream as partitions: each is a part of the stream, together they are the whole."""

from collections.abc import Callable

import dagster as dg

from dagster_dataops.errors import ConfigurationError
from dagster_dataops.execution.runners.given_stream import check_ends, name_of_stream
from dagster_dataops.foundation.hashing.values import digest
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.streams.identity.stream_identity import definition
from dagster_dataops.streams.operations import Operations
from dagster_dataops.streams.positioned_stream import PositionedStream
from dagster_dataops.streams.sharding.cuts import with_shard


class ShardPartitions:
    """Partitions ``0-of-n`` to ``n-1-of-n``, each one shard of a stream.

    Attributes:
        count: The number of shards.
        definition: The partitions.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        keys = [f"{number}-of-{count}" for number in range(count)]
        self.definition = dg.StaticPartitionsDefinition(keys)

    def of(self, stream: Operations) -> Callable[[str], Operations]:
        """Return a source function: given the key of a partition, it returns its shard.

        The shards are contiguous: one after another, in the order of the partitions, they have the
        items of the stream.

        Raises:
            StreamDefinitionError: The stream never ends.
        """
        check_ends(stream)
        defined = definition(stream.stage)

        def shard(partition: str, _version: str = digest([defined, self.count])) -> Operations:
            number = self.definition.get_partition_keys().index(partition)
            stage = with_shard(stream.stage, number, self.count)
            if isinstance(stream, PositionedStream):
                return stream.with_stage(stage)
            return type(stream)(stage)

        shard.__name__ = shard.__qualname__ = name_of_stream(stream)
        shard.__doc__ = f"A stream in {counted(self.count, 'contiguous shards')}."
        return shard


def shard_partitions(count: int) -> ShardPartitions:
    """Return the partitions of a stream in ``count`` contiguous shards.

    Example:
        >>> shards = shard_partitions(8)
        >>> build_definitions(
        ...     ppl,
        ...     source=shards.of(stream),
        ...     partitions_def=shards.definition,
        ...     unpartitioned=["unique"],
        ... )

    Raises:
        ConfigurationError: ``count`` is no integer of at least 1.
    """
    if type(count) is not int or count < 1:
        raise ConfigurationError("shard_partitions", count, "a number of shards of at least 1")
    return ShardPartitions(count)
