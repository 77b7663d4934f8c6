"""The operations that build a stream. Each returns a new stream and changes none."""

from typing import Self

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.core.arguments import check_count, check_seed
from dagster_dataops.streams.item_operations import ItemOperations
from dagster_dataops.streams.list_operations import ListOperations
from dagster_dataops.streams.stages.prefetching import Prefetch
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.shuffling import Shuffle
from dagster_dataops.streams.stages.taking import Shard, Skip, Take


class Operations(ItemOperations, ListOperations):
    """All operations on a stream."""

    def prefetch(self, num_examples: int) -> Self:
        """Read up to ``num_examples`` items ahead in a thread; 0 turns that off."""
        check_count("prefetch", "num_examples", num_examples, 0)
        return self.then(Prefetch(self.stage, num_examples))

    def repeat(self, num_repeats: int | None = None, reset_rng: bool = False) -> Self:
        """Yield all items ``num_repeats`` times; without end if ``None``.

        Each epoch is shuffled differently. With ``reset_rng`` all epochs have the same order.
        """
        if num_repeats is not None:
            check_count("repeat", "num_repeats", num_repeats, 0)
        return self.then(Repeat(self.stage, num_repeats, reset_rng))

    def shard(self, shard_idx: int, num_shards: int, allow_uneven: bool = True) -> Self:
        """Keep every ``num_shards``-th item, starting at index ``shard_idx``.

        With ``allow_uneven=False`` all shards have the same number of items, and the last few items
        of the stream can be missing from all of them.
        """
        check_count("shard", "num_shards", num_shards, 1)
        check_count("shard", "shard_idx", shard_idx, 0)
        if shard_idx >= num_shards:
            reason = f"shard_idx is {shard_idx}; it must be less than num_shards, {num_shards}"
            raise StreamDefinitionError("shard", reason)
        return self.then(Shard(self.stage, shard_idx, num_shards, allow_uneven))

    def shuffle(self, shuffle_window: int, seed: int | None = None) -> Self:
        """Shuffle windows of ``shuffle_window`` items; 0 shuffles all items, 1 none.

        Without a seed, one is derived from the stream's seed and recorded in the state.
        """
        check_count("shuffle", "shuffle_window", shuffle_window, 0)
        check_seed("shuffle", seed)
        return self.then(Shuffle(self.stage, shuffle_window, seed))

    def skip(self, num_examples: int) -> Self:
        """Skip the first ``num_examples`` items."""
        check_count("skip", "num_examples", num_examples, 0)
        return self.then(Skip(self.stage, num_examples))

    def take(self, num_examples: int) -> Self:
        """End after ``num_examples`` items."""
        check_count("take", "num_examples", num_examples, 0)
        return self.then(Take(self.stage, num_examples))
