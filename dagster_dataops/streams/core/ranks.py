"""The rank of this process among the processes that share the items of a stream."""

import sys
from typing import Any, NamedTuple

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.core.arguments import check_count


class WorldRank(NamedTuple):
    """The rank of this process and the number of ranks."""

    rank: int
    world_size: int


def given_rank(stage: str, rank: int | None, world_size: int | None) -> WorldRank | None:
    """Return the rank that was given; ``None`` if none was."""
    if rank is None and world_size is None:
        return None
    if rank is None or world_size is None:
        raise StreamDefinitionError(stage, "give both rank and world_size, or neither")
    return checked_rank(stage, rank, world_size)


def checked_rank(stage: str, rank: int, world_size: int) -> WorldRank:
    """Return a rank, which must be in range."""
    check_count(stage, "rank", rank, 0)
    check_count(stage, "world_size", world_size, 1)
    if rank >= world_size:
        reason = f"rank is {rank}; it must be below world_size, {world_size}"
        raise StreamDefinitionError(stage, reason)
    return WorldRank(rank, world_size)


def torch_group() -> Any:
    """Return ``torch.distributed`` if this process is in a group. Imports nothing."""
    distributed = sys.modules.get("torch.distributed")
    return (
        distributed
        if distributed is not None and distributed.is_available() and distributed.is_initialized()
        else None
    )


def group_rank() -> WorldRank | None:
    """Return the rank of this process in the group of ``torch.distributed``, if it is in one."""
    group = torch_group()
    return None if group is None else WorldRank(group.get_rank(), group.get_world_size())
