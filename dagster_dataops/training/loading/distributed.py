"""`DistributedReadingService`: each rank reads its part of the items."""

import logging
import os
from typing import Any, Final, get_args

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.ranks import (
    WorldRank,
    checked_rank,
    given_rank,
    group_rank,
    torch_group,
)
from dagster_dataops.streams.operations import Operations
from dagster_dataops.training.loading.rank_stage import Ending, ranked
from dagster_dataops.training.loading.reading_service import IterResetFn, ReadingServiceInterface
from dagster_dataops.training.loading.seed_generator import SeedGenerator

_SERVICE: Final = "DistributedReadingService"
_ENDINGS: Final = get_args(Ending)
_LOGGER: Final = logging.getLogger(__name__)


class DistributedReadingService(ReadingServiceInterface):
    """Read the items of one rank: item i belongs to rank ``i mod world_size``.

    The items are those at the sharding mark of the stream, or without a mark the items of the whole
    stream; ``map`` at its end is applied to the rank's own items only. Items are counted from the
    position at which reading begins. The state is that of the whole stream: it is the same on every
    rank that has read as many items, and any number of ranks can load it.

    If the rank is taken from ``torch.distributed``, the seed of rank 0 holds for all ranks.

    Args:
        rank: The rank of this process. If ``None``, it is taken from ``torch.distributed`` or from
            the environment variables ``RANK`` and ``WORLD_SIZE`` when reading begins.
        world_size: The number of ranks; give both or neither.
        ending: The treatment of the last items if they are fewer than the ranks. ``exact``: the
            first ranks have one item more. ``drop``: no rank has them. ``repeat``: the other ranks
            have one of them, too.

    Raises:
        StreamDefinitionError: An argument is invalid.
    """

    def __init__(
        self, rank: int | None = None, world_size: int | None = None, ending: Ending = "exact"
    ) -> None:
        if ending not in _ENDINGS:
            reason = f"ending is {ending!r}; it must be one of {', '.join(_ENDINGS)}"
            raise StreamDefinitionError(_SERVICE, reason)
        self.ending = ending
        self._place = given_rank(_SERVICE, rank, world_size)
        self._group: Any = None

    @override
    def initialize(self, datapipe: Operations) -> Operations:
        distributed = None if self._place else torch_group()
        place = self._place or _found_rank()
        self._rank = place.rank
        if distributed is not None:
            self._group = distributed.new_group(backend="gloo")
            if self.ending == "exact" and place.rank == 0:
                _LOGGER.warning(
                    "%s: ending is 'exact', so the first ranks may read one item more than the "
                    "others; if the ranks exchange gradients, choose 'drop' or 'repeat'",
                    _SERVICE,
                )
        return datapipe.with_stage(
            ranked(datapipe.stage, place.rank, place.world_size, self.ending)
        )

    @override
    def initialize_iteration(
        self, seed_generator: SeedGenerator, iter_reset_fn: IterResetFn | None = None
    ) -> IterResetFn | None:
        if self._group is not None:
            seed = [seed_generator.root]
            torch_group().broadcast_object_list(seed, src=0, group=self._group)
            if seed[0] != seed_generator.root:
                seed_generator.replace_root(seed[0])
        seed_generator.spawn(self._rank, inplace=True)
        return None

    @override
    def finalize(self) -> None:
        distributed = torch_group()
        if self._group is not None and distributed is not None:
            distributed.destroy_process_group(self._group)
        self._group = None


def _found_rank() -> WorldRank:
    """Return the rank of ``torch.distributed`` or of the environment."""
    known = group_rank()
    if known is not None:
        return known
    try:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError) as error:
        reason = (
            "the rank is unknown: give rank and world_size, or begin reading after "
            "torch.distributed.init_process_group(), or with RANK and WORLD_SIZE in the environment"
        )
        raise StreamDefinitionError(_SERVICE, reason) from error
    return checked_rank(_SERVICE, rank, world_size)
