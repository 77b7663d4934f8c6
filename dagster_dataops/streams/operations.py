"""The operations that a stream is built of; each returns a new stream, none changes one."""

from collections.abc import Callable, Iterable
from collections.abc import Sequence as SequenceOf
from typing import Any, Self

from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.arguments import check_callable, check_count, check_seed
from dagster_dataops.streams.bucketing import Bucket
from dagster_dataops.streams.costs import DynamicBucket
from dagster_dataops.streams.finitude import Finitude
from dagster_dataops.streams.flattening import YieldFrom
from dagster_dataops.streams.lengths import BucketByLength
from dagster_dataops.streams.mapping import Filter, Function, Map
from dagster_dataops.streams.parallel import MODES, Mode, ParallelMap
from dagster_dataops.streams.prefetching import Prefetch
from dagster_dataops.streams.repeating import Repeat
from dagster_dataops.streams.shuffling import Shuffle
from dagster_dataops.streams.stage import Stage
from dagster_dataops.streams.taking import Shard, Skip, Take


class Operations:
    """A stream that can be built on.

    Attributes:
        stage: Its last stage.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def part(self) -> Stage:
        """Return what it consists of, to be part of another stream."""
        return self.stage

    def _then(self, stage: Stage) -> Self:
        return type(self)(stage)

    @property
    def finitude(self) -> Finitude:
        """Whether it ends; found without reading anything."""
        return self.stage.finitude

    @property
    def endless_stage(self) -> str | None:
        """The stage that makes it never end; ``None`` if it ends."""
        stage = self.stage.endless()
        return None if stage is None else stage.name

    def is_infinite(self) -> bool:
        """Whether it is infinite, or pseudo-infinite, and so never ends by itself."""
        return self.finitude is not Finitude.FINITE

    def map(
        self,
        fn: Function | SequenceOf[Function],
        selector: str | Selector | None = None,
        num_parallel_calls: int = 1,
        deterministic: bool = True,
        mode: Mode | None = None,
    ) -> Self:
        """Apply a function to every item.

        Args:
            fn: A function, or several that are applied one after another.
            selector: To which elements of the item, such as ``foo[1].y,bar``; all of it if
                ``None``. The item itself stays as it was.
            num_parallel_calls: How many calls run at once.
            deterministic: Whether results come in the order of the items, or as they are done.
            mode: ``thread`` (the default), ``process`` or ``async`` (that of coroutine functions).

        Raises:
            SelectorSyntaxError: The selector is malformed.
            StreamDefinitionError: An argument cannot be.
        """
        functions = tuple(fn) if isinstance(fn, (list, tuple)) else (fn,)
        for function in functions:
            check_callable("map", "fn", function)
        check_count("map", "num_parallel_calls", num_parallel_calls, 1)
        if mode is not None and mode not in MODES:
            raise StreamDefinitionError("map", f"mode is {mode!r}; it is one of {MODES}")
        chosen = _selector(selector)
        waits = len(functions) == 1 and _is_coroutine(functions[0])
        if waits and (selector is not None or mode not in {None, "async"}):
            reason = "a coroutine function takes the whole item and runs in mode 'async'"
            raise StreamDefinitionError("map", reason)
        if mode == "async" and not waits:
            raise StreamDefinitionError("map", "mode 'async' takes one coroutine function")
        if num_parallel_calls == 1 and mode is None and not waits:
            return self._then(Map(self.stage, functions, chosen))
        ordered = deterministic
        parallel = ParallelMap(self.stage, functions, chosen, num_parallel_calls, ordered, mode)
        return self._then(parallel)

    def filter(self, fn: Function, selector: str | Selector | None = None) -> Self:
        """Keep the items of which ``fn`` says True, asked of the item or what is selected of it."""
        check_callable("filter", "fn", fn)
        return self._then(Filter(self.stage, fn, _selector(selector)))

    def bucket(self, bucket_size: int, drop_remainder: bool = False) -> Self:
        """Make lists of ``bucket_size`` items; the last may be shorter, unless it is dropped."""
        check_count("bucket", "bucket_size", bucket_size, 1)
        return self._then(Bucket(self.stage, bucket_size, drop_remainder))

    def bucket_by_length(
        self,
        bucket_sizes: Iterable[tuple[int, int]],
        selector: str | Selector | None = None,
        min_data_len: int = 1,
        skip_below_min_examples: bool = False,
        skip_above_max_examples: bool = False,
        drop_remainder: bool = False,
    ) -> Self:
        """Make lists of items of like length.

        Args:
            bucket_sizes: (how many items, up to which length) of each bucket.
            selector: Whose length counts, the longest of several; the item's own if ``None``.
                An integer is its own length.
            min_data_len: The least length.
            skip_below_min_examples: Whether shorter ones are passed over; else they are failures.
            skip_above_max_examples: The same of those longer than every bucket.
            drop_remainder: Whether the last list is dropped if it is not full.
        """
        sizes = tuple(sorted(((int(n), int(length)) for n, length in bucket_sizes), key=_by_length))
        if not sizes:
            raise StreamDefinitionError("bucket_by_length", "bucket_sizes is empty")
        for count, length in sizes:
            check_count("bucket_by_length", "a size of bucket_sizes", count, 1)
            check_count("bucket_by_length", "a length of bucket_sizes", length, 0)
        return self._then(
            BucketByLength(
                self.stage,
                sizes,
                _selector(selector),
                min_data_len,
                skip_below_min_examples,
                skip_above_max_examples,
                drop_remainder,
            )
        )

    def dynamic_bucket(
        self,
        threshold: float,
        cost_fn: Callable[[Any], float],
        bucket_creation_fn: Callable[[list[Any]], tuple[list[Any], list[Any]]] | None = None,
        min_num_examples: int | None = None,
        max_num_examples: int | None = None,
        drop_remainder: bool = False,
    ) -> Self:
        """Make lists whose items cost ``threshold`` or more together.

        Args:
            threshold: Of the sum of costs.
            cost_fn: The cost of an item.
            bucket_creation_fn: Makes (lists, items left over) of what was gathered; what is left
                over begins the next list, at no cost.
            min_num_examples: How many items a list has at least.
            max_num_examples: How many items a list has at most.
            drop_remainder: Whether the last list is dropped if it is not full.
        """
        check_callable("dynamic_bucket", "cost_fn", cost_fn)
        if not threshold > 0:
            raise StreamDefinitionError("dynamic_bucket", f"threshold is {threshold}, not above 0")
        if max_num_examples is not None:
            least = max(1, min_num_examples or 0)
            check_count("dynamic_bucket", "max_num_examples", max_num_examples, least)
        return self._then(
            DynamicBucket(
                self.stage,
                threshold,
                cost_fn,
                bucket_creation_fn,
                min_num_examples,
                max_num_examples,
                drop_remainder,
            )
        )

    def prefetch(self, num_examples: int) -> Self:
        """Have a thread read up to ``num_examples`` items ahead; 0 reads none ahead."""
        check_count("prefetch", "num_examples", num_examples, 0)
        return self._then(Prefetch(self.stage, num_examples))

    def repeat(self, num_repeats: int | None = None, reset_rng: bool = False) -> Self:
        """Yield everything ``num_repeats`` times, for ever if ``None``.

        Each epoch is shuffled anew; with ``reset_rng`` all are like the first.
        """
        if num_repeats is not None:
            check_count("repeat", "num_repeats", num_repeats, 0)
        return self._then(Repeat(self.stage, num_repeats, reset_rng))

    def shard(self, shard_idx: int, num_shards: int, allow_uneven: bool = True) -> Self:
        """Keep every ``num_shards``-th item, from number ``shard_idx``.

        With ``allow_uneven=False`` all shards have equally many, and the last few items of the
        stream may be in none.
        """
        check_count("shard", "num_shards", num_shards, 1)
        check_count("shard", "shard_idx", shard_idx, 0)
        if shard_idx >= num_shards:
            reason = f"shard_idx is {shard_idx}; it is less than num_shards, {num_shards}"
            raise StreamDefinitionError("shard", reason)
        return self._then(Shard(self.stage, shard_idx, num_shards, allow_uneven))

    def shuffle(self, shuffle_window: int, seed: int | None = None) -> Self:
        """Shuffle windows of ``shuffle_window`` items; 0 is one window of them all, 1 does nothing.

        Without a seed it is derived from the stream's, and recorded in its state.
        """
        check_count("shuffle", "shuffle_window", shuffle_window, 0)
        check_seed("shuffle", seed)
        return self._then(Shuffle(self.stage, shuffle_window, seed))

    def skip(self, num_examples: int) -> Self:
        """Leave out the first ``num_examples`` items."""
        check_count("skip", "num_examples", num_examples, 0)
        return self._then(Skip(self.stage, num_examples))

    def take(self, num_examples: int) -> Self:
        """End after ``num_examples`` items."""
        check_count("take", "num_examples", num_examples, 0)
        return self._then(Take(self.stage, num_examples))

    def yield_from(self, fn: Callable[[Any], Any]) -> Self:
        """Yield the items of the stream that ``fn`` makes of every item; it must end."""
        check_callable("yield_from", "fn", fn)
        return self._then(YieldFrom(self.stage, fn))


def _by_length(size: tuple[int, int]) -> int:
    return size[1]


def _selector(given: str | Selector | None) -> Selector | None:
    return Selector(given) if isinstance(given, str) else given


def _is_coroutine(function: Function) -> bool:
    import inspect

    return inspect.iscoroutinefunction(function)
