"""The operations that build a stream. Each returns a new stream and changes none."""

import inspect
import warnings
from collections.abc import Callable, Iterable
from collections.abc import Sequence as SequenceOf
from operator import itemgetter
from typing import Any, Final, Self

from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.selectors.selector import Selector
from dagster_dataops.streams.core.arguments import (
    check_callable,
    check_count,
    check_seed,
    check_takes,
)
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.stage import Stage
from dagster_dataops.streams.core.stage_tree import distinct_stages
from dagster_dataops.streams.core.unused_results import warn_if_unused
from dagster_dataops.streams.parallel.parallel_map import MODES, Mode, OrderedMap, UnorderedMap
from dagster_dataops.streams.sharding.marks import ShardingDispatch, ShardingFilter
from dagster_dataops.streams.sharding.workers_stage import WorkersStage, check_mark, check_workers
from dagster_dataops.streams.stages.flattening import YieldFrom
from dagster_dataops.streams.stages.grouping.buckets import Bucket, BucketByLength, DynamicBucket
from dagster_dataops.streams.stages.grouping.collater import CollateOptionsOverride, Collater
from dagster_dataops.streams.stages.grouping.sequence_packing import PackSequences
from dagster_dataops.streams.stages.grouping.window_packing import Pack, PackGroup, SelectGroups
from dagster_dataops.streams.stages.mapping import Filter, Function, Map, RandomMap
from dagster_dataops.streams.stages.prefetching import Prefetch
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.shuffling import Shuffle
from dagster_dataops.streams.stages.taking import ContiguousShard, Shard, Skip, Take

_PREFETCH: Final = 4  # tasks for each worker that may be unfinished or not yet read


class Operations:
    """A stream that operations extend.

    Attributes:
        stage: The last stage.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    @override
    def __repr__(self) -> str:
        return f"<stream {', '.join(stage.name for stage in distinct_stages(self.stage))}>"

    def part(self) -> Stage:
        """Return the last stage, to make it part of another stream."""
        return self.stage

    def then(self, stage: Stage) -> Self:
        """Return a stream that ends with ``stage``."""
        warn_if_unused(Operations)
        return self.extended(stage)

    def extended(self, stage: Stage) -> Self:
        """Return a stream of this kind that ends with ``stage``."""
        return type(self)(stage)

    def as_written(self) -> "Operations":
        """Return the stream that is written as a result: this one, unless JSON cannot hold it."""
        return self

    def with_stage(self, stage: Stage) -> Self:
        """Return the same stream, with its options, upon another last stage."""
        return self.then(stage)

    @property
    def finitude(self) -> Finitude:
        """Whether the stream ends. Nothing is read to find out."""
        return self.stage.finitude

    @property
    def endless_stage(self) -> str | None:
        """The stage that makes the stream infinite; ``None`` if it ends."""
        stage = self.stage.endless()
        return None if stage is None else stage.described

    def is_infinite(self) -> bool:
        """Return whether the stream is infinite or pseudo-infinite, so never ends by itself.

        Example:
            >>> read_sequence([1]).repeat().is_infinite()
            True
        """
        return self.finitude is not Finitude.FINITE

    def map(
        self,
        fn: Function | SequenceOf[Function],
        selector: str | Selector | None = None,
        num_parallel_calls: int = 1,
        deterministic: bool = True,
        mode: Mode | None = None,
        *,
        random: bool = False,
    ) -> Self:
        """Apply a function to each item.

        Args:
            fn: A function, or several functions to apply in order.
            selector: The elements of the item to change, such as ``foo[1].y,bar``; the whole item
                if ``None``. The original item is not changed.
            num_parallel_calls: The number of concurrent calls.
            deterministic: Whether to yield results in item order, or as they finish.
            mode: ``thread`` (default), ``process`` or ``async`` (default for coroutine functions).
            random: Whether each function also takes a ``random.Random``, whose seed depends on the
                seed of the stream, the path of the stage and the number of the item. So the results
                are the same for every number of workers, and after resuming. Not with concurrent
                calls.

        Raises:
            SelectorSyntaxError: The selector is malformed.
            StreamDefinitionError: An argument is invalid.

        Example:
            >>> list(read_sequence([{"n": 1}, {"n": 2}]).map(lambda n: n * 10, selector="n"))
            [{'n': 10}, {'n': 20}]
        """
        functions = tuple(fn) if isinstance(fn, (list, tuple)) else (fn,)
        for function in functions:
            check_callable("map", "fn", function)
        check_count("map", "num_parallel_calls", num_parallel_calls, 1)
        if mode is not None and mode not in MODES:
            raise StreamDefinitionError("map", f"mode is {mode!r}; it must be one of {MODES}")
        chosen = _as_selector(selector)
        waits = len(functions) == 1 and inspect.iscoroutinefunction(functions[0])
        if waits and (selector is not None or mode not in {None, "async"}):
            reason = "a coroutine function takes the whole item and runs in mode 'async'"
            raise StreamDefinitionError("map", reason)
        if mode == "async" and not waits:
            raise StreamDefinitionError("map", "mode 'async' takes one coroutine function")
        if random:
            if num_parallel_calls > 1 or mode is not None or waits:
                reason = "random=True calls one after another; workers() runs them in processes"
                raise StreamDefinitionError("map", reason)
            check_takes("map", functions, "an item", "a random.Random (random=True)")
            return self.then(RandomMap(self.stage, functions, chosen))
        if num_parallel_calls == 1 and mode is None and not waits:
            return self.then(Map(self.stage, functions, chosen))
        parallel = OrderedMap if deterministic else UnorderedMap
        return self.then(parallel(self.stage, functions, chosen, num_parallel_calls, mode))

    def filter(self, fn: Function, selector: str | Selector | None = None) -> Self:
        """Keep the items for which ``fn`` of the item, or of its selected part, is true.

        Example:
            >>> list(read_sequence([{"n": 1}, {"n": 2}]).filter(lambda n: n > 1, selector="n"))
            [{'n': 2}]
        """
        check_callable("filter", "fn", fn)
        return self.then(Filter(self.stage, fn, _as_selector(selector)))

    def yield_from(self, fn: Callable[[Any], Any]) -> Self:
        """Yield the items of the finite stream that ``fn`` returns for each item.

        Example:
            >>> list(
            ...     read_sequence(["a b", "c"]).yield_from(lambda text: read_sequence(text.split()))
            ... )
            ['a', 'b', 'c']
        """
        check_callable("yield_from", "fn", fn)
        return self.then(YieldFrom(self.stage, fn))

    def bucket(self, bucket_size: int, drop_remainder: bool = False) -> Self:
        """Make lists of ``bucket_size`` items; the last one may be shorter, unless dropped.

        Example:
            >>> list(read_sequence([1, 2, 3]).bucket(2))
            [[1, 2], [3]]
        """
        check_count("bucket", "bucket_size", bucket_size, 1)
        return self.then(Bucket(self.stage, bucket_size, drop_remainder))

    def bucket_by_length(
        self,
        bucket_sizes: Iterable[tuple[int, int]],
        selector: str | Selector | None = None,
        min_data_len: int = 1,
        skip_below_min_examples: bool = False,
        skip_above_max_examples: bool = False,
        drop_remainder: bool = False,
    ) -> Self:
        """Make lists of items of similar length.

        Args:
            bucket_sizes: For each bucket, a pair (number of items, maximum length).
            selector: The element that has the length; with several, the longest counts. The item
                itself if ``None``. An integer is its own length.
            min_data_len: The minimum length.
            skip_below_min_examples: Whether to skip shorter items; otherwise they are failures.
            skip_above_max_examples: Whether to skip items longer than every bucket; otherwise they
                are failures.
            drop_remainder: Whether to drop the last list if it is not full.

        Example:
            >>> texts = read_sequence(["aaa", "b", "cc", "dddd"])
            >>> list(texts.bucket_by_length([(2, 2), (2, 4)]))
            [['b', 'cc'], ['aaa', 'dddd']]
        """
        pairs = [(int(n), int(length)) for n, length in bucket_sizes]
        sizes = tuple(sorted(pairs, key=itemgetter(1)))
        if not sizes:
            raise StreamDefinitionError("bucket_by_length", "bucket_sizes is empty")
        for count, length in sizes:
            check_count("bucket_by_length", "a size of bucket_sizes", count, 1)
            check_count("bucket_by_length", "a length of bucket_sizes", length, 0)
        return self.then(
            BucketByLength(
                self.stage,
                sizes,
                _as_selector(selector),
                min_data_len,
                skip_below_min_examples,
                skip_above_max_examples,
                drop_remainder,
            )
        )

    def collate(
        self,
        pad_value: float | None = None,
        pad_to_multiple: int = 1,
        overrides: Iterable[CollateOptionsOverride] | None = None,
        num_parallel_calls: int = 1,
    ) -> Self:
        """Make one batch of each list of items: short for ``map(Collater(...))``.

        Args:
            pad_value: See `Collater`.
            pad_to_multiple: See `Collater`.
            overrides: See `Collater`.
            num_parallel_calls: See `map`.

        Raises:
            StreamDefinitionError: An argument is invalid.

        Example:
            >>> rows = read_sequence([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])
            >>> list(rows.bucket(2).collate())
            [{'a': [1, 2], 'b': ['x', 'y']}]
        """
        collater = Collater(pad_value, pad_to_multiple, overrides)
        return self.map(collater, num_parallel_calls=num_parallel_calls)

    def dynamic_bucket(
        self,
        threshold: float,
        cost_fn: Callable[[Any], float],
        bucket_creation_fn: Callable[[list[Any]], tuple[list[Any], list[Any]]] | None = None,
        min_num_examples: int | None = None,
        max_num_examples: int | None = None,
        drop_remainder: bool = False,
    ) -> Self:
        """Make lists of items whose costs add up to ``threshold`` or more.

        Args:
            threshold: The total cost that completes a list.
            cost_fn: Returns the cost of an item.
            bucket_creation_fn: Given the collected items, returns (lists, items left over). The
                items left over begin the next list, at cost 0.
            min_num_examples: The minimum number of items in a list.
            max_num_examples: The maximum number of items in a list.
            drop_remainder: Whether to drop the last list if it is not full.

        Example:
            >>> list(read_sequence(["aa", "bbb", "c", "dd"]).dynamic_bucket(4, len))
            [['aa', 'bbb'], ['c', 'dd']]
        """
        check_callable("dynamic_bucket", "cost_fn", cost_fn)
        if not threshold > 0:
            raise StreamDefinitionError("dynamic_bucket", f"threshold is {threshold}, not above 0")
        if max_num_examples is not None:
            least = max(1, min_num_examples or 0)
            check_count("dynamic_bucket", "max_num_examples", max_num_examples, least)
        return self.then(
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

    def pack(
        self,
        num_elements: Any = None,
        max_seq_len: Any = None,
        pad_value: Any = 0,
        truncate: bool = True,
        drop_remainder: bool = True,
        pinned_memory: bool = False,
        **windows: Any,
    ) -> Self:
        """Join sequences of numbers to packs of ``num_elements`` elements, as fairseq2 does.

        Items are tensors of PyTorch or arrays of NumPy with one dimension, or lists of numbers;
        empty ones are passed over. A pack is ``{"seqs", "seq_lens"}``: ``seqs``, of the same type,
        has ``num_elements`` elements, and ``seq_lens`` lists the lengths of its sequences.

        The earlier meaning, ``pack(size, select, pack)``, is now `pack_windows`; such a call still
        works, with a warning.

        Args:
            num_elements: The number of elements of a pack.
            max_seq_len: The maximum length of a sequence in a pack.
            pad_value: The value behind the last sequence of a pack that is not full.
            truncate: Whether a sequence that is too long for the rest of a pack, or longer than
                ``max_seq_len``, is divided. The next pack then begins with the last element of the
                pack before. Otherwise such a sequence begins the next pack, and is a failed item
                if it is longer than ``max_seq_len``.
            drop_remainder: Whether to drop the last pack if it is not full. No effect without
                ``truncate``.
            pinned_memory: Whether tensors are in pinned memory, on a machine with an accelerator.
            windows: ``size``, ``select`` and ``pack``, of the earlier meaning.

        Raises:
            StreamDefinitionError: An argument is invalid.

        Example:
            >>> packs = read_sequence([[1, 2, 3, 0], [5, 6, 0]]).pack(3, 32, drop_remainder=False)
            >>> next(iter(packs))
            {'seqs': [1, 2, 3], 'seq_lens': [3]}
        """
        if windows or callable(max_seq_len):
            arguments = {"size": num_elements, "select": max_seq_len, "pack": pad_value, **windows}
            return self._packed_windows(arguments)
        check_count("pack", "num_elements", num_elements, 2 if truncate else 1)
        check_count("pack", "max_seq_len", max_seq_len, 1)
        options = pad_value, truncate, drop_remainder, pinned_memory
        return self.then(PackSequences(self.stage, num_elements, max_seq_len, *options))

    def _packed_windows(self, arguments: dict[str, Any]) -> Self:
        if len(arguments) > len(("size", "select", "pack")):
            unknown = list(arguments)[-1]
            raise StreamArgumentError("pack", f"the argument {unknown!r} is unknown")
        msg = "pack(size, select, pack) is named pack_windows now; pack() joins sequences"
        warnings.warn(msg, DeprecationWarning, stacklevel=3)
        return self.pack_windows(**arguments)

    def pack_windows(self, size: int, select: SelectGroups, pack: PackGroup) -> Self:
        """Make packs of windows of ``size`` items; the last window may be shorter.

        The restore keys of the items become that of their pack, and their sources those of the
        pack. A window is read again when the stream resumes in the middle of its packs.

        Args:
            size: The number of items of a window.
            select: Given the list of items, returns a list of groups, each a list of items. Items
                in no group are dropped.
            pack: Given a group, returns a record, or several in a list or a generator.

        Raises:
            StreamDefinitionError: An argument is invalid.

        Example:
            >>> stream = read_sequence([{"n": 1}, {"n": 2}, {"n": 3}])
            >>> pairs = lambda window: [window[:2], window[2:]]
            >>> total = lambda group: {"sum": sum(one["n"] for one in group)}
            >>> list(stream.pack_windows(3, pairs, total))
            [{'sum': 3}, {'sum': 3}]
        """
        check_count("pack_windows", "size", size, 1)
        check_callable("pack_windows", "select", select)
        check_callable("pack_windows", "pack", pack)
        return self.then(Pack(self.stage, size, select, pack))

    def prefetch(self, num_examples: int) -> Self:
        """Read up to ``num_examples`` items ahead in a thread; 0 turns that off.

        Example:
            >>> list(read_sequence([1, 2, 3]).prefetch(2))
            [1, 2, 3]
        """
        check_count("prefetch", "num_examples", num_examples, 0)
        return self.then(Prefetch(self.stage, num_examples))

    def repeat(self, num_repeats: int | None = None, reset_rng: bool = False) -> Self:
        """Yield all items ``num_repeats`` times; without end if ``None``.

        Each epoch is shuffled differently. With ``reset_rng`` all epochs have the same order.

        Example:
            >>> list(read_sequence([1, 2]).repeat(2))
            [1, 2, 1, 2]
        """
        if num_repeats is not None:
            check_count("repeat", "num_repeats", num_repeats, 0)
        return self.then(Repeat(self.stage, num_repeats, reset_rng))

    def shard(
        self,
        shard_idx: int,
        num_shards: int,
        allow_uneven: bool = True,
        *,
        contiguous: bool = False,
    ) -> Self:
        """Keep one of ``num_shards`` parts of the items; by default, none is left out.

        Args:
            shard_idx: The index of the part, from 0.
            num_shards: The number of parts.
            allow_uneven: Whether all items belong to a part, and some parts have one item more.
                Otherwise the last few items can be missing from all of them, and all parts have as
                many. The default of fairseq2 is ``False``: give ``allow_uneven=False`` where ranks
                must be in step, or a rank can wait for ever for one that has ended.
            contiguous: Whether a part is a run of consecutive items, so that all parts one after
                another are the stream. Otherwise it is every ``num_shards``-th item. A stream
                without random access is read twice then, once to count its items.

        Raises:
            StreamDefinitionError: An argument is invalid, or the parts of a stream that never ends
                are contiguous.

        Example:
            >>> list(read_sequence([0, 1, 2, 3, 4]).shard(1, 2))
            [1, 3]
            >>> list(read_sequence([0, 1, 2, 3, 4]).shard(1, 2, contiguous=True))
            [3, 4]
        """
        check_count("shard", "num_shards", num_shards, 1)
        check_count("shard", "shard_idx", shard_idx, 0)
        if shard_idx >= num_shards:
            reason = f"shard_idx is {shard_idx}; it must be less than num_shards, {num_shards}"
            raise StreamDefinitionError("shard", reason)
        if contiguous and self.is_infinite():
            reason = f"a stream that never ends ({self.endless_stage}) has no contiguous parts"
            raise StreamDefinitionError("shard", reason)
        kind = ContiguousShard if contiguous else Shard
        return self.then(kind(self.stage, shard_idx, num_shards, allow_uneven))

    def sharding_filter(self) -> Self:
        """Mark the place from which each item belongs to one worker; see `workers`.

        Every worker runs the stages before the mark, and passes over the items of the others. If
        these stages only choose and order samples that have an index, it reads no others. The mark
        changes neither items nor states.

        Raises:
            StreamDefinitionError: The stream has a mark or workers already.

        Example:
            >>> stream = read_sequence([1, 2, 3]).sharding_filter().map(str)
            >>> list(stream)  # stream.workers(2) yields the same
            ['1', '2', '3']
        """
        check_mark("sharding_filter", self.stage)
        return self.then(ShardingFilter(self.stage))

    def sharding_round_robin_dispatch(self) -> Self:
        """Mark the place from which each item belongs to one worker; see `workers`.

        The reading process alone reads the stages before the mark, and sends each item to a worker.
        The mark changes neither items nor states.

        Raises:
            StreamDefinitionError: The stream has a mark or workers already.

        Example:
            >>> stream = read_sequence([1, 2]).sharding_round_robin_dispatch().map(str)
            >>> list(stream)  # stream.workers(2) yields the same
            ['1', '2']
        """
        check_mark("sharding_round_robin_dispatch", self.stage)
        return self.then(ShardingDispatch(self.stage))

    def workers(self, num_workers: int, prefetch: int = _PREFETCH, main_prefetch: int = 0) -> Self:
        """Read the stream with several processes: the same items, order and states as with one.

        ``map``, ``filter`` and ``yield_from`` directly behind the mark run in the workers; stages
        that hold items, such as ``bucket``, and all later ones run in the reading process. Without
        a mark, the last ``map``, ``filter`` and ``yield_from`` in a row run in the workers. The
        stream can be complete; the new one is at its start.

        Args:
            num_workers: The number of processes; 0 reads in the process itself.
            prefetch: The number of tasks for each worker that may be unfinished or not yet read. A
                task has up to 64 items.
            main_prefetch: The number of further tasks, of all workers together, that may be
                finished and wait for a slow one before them.

        Raises:
            StreamDefinitionError: An argument is invalid, or the stream has workers already.

        Example:
            >>> list(read_sequence([1, 2, 3]).map(str).workers(2))
            ['1', '2', '3']
        """
        check_count("workers", "num_workers", num_workers, 0)
        check_count("workers", "prefetch", prefetch, 1)
        check_count("workers", "main_prefetch", main_prefetch, 0)
        check_workers("workers", self.stage)
        return self.with_stage(WorkersStage(self.stage, num_workers, prefetch, main_prefetch))

    def shuffle(self, shuffle_window: int, seed: int | None = None) -> Self:
        """Shuffle windows of ``shuffle_window`` items; 0 shuffles all items, 1 none.

        Without a seed, one is derived from the stream's seed and recorded in the state.

        Example:
            >>> sorted(read_sequence([1, 2, 3]).shuffle(0, seed=1))
            [1, 2, 3]
        """
        check_count("shuffle", "shuffle_window", shuffle_window, 0)
        check_seed("shuffle", seed)
        return self.then(Shuffle(self.stage, shuffle_window, seed))

    def skip(self, num_examples: int) -> Self:
        """Skip the first ``num_examples`` items.

        Example:
            >>> list(read_sequence([1, 2, 3]).skip(1))
            [2, 3]
        """
        check_count("skip", "num_examples", num_examples, 0)
        return self.then(Skip(self.stage, num_examples))

    def take(self, num_examples: int) -> Self:
        """End after ``num_examples`` items.

        Example:
            >>> list(read_sequence([1, 2, 3]).take(2))
            [1, 2]
        """
        check_count("take", "num_examples", num_examples, 0)
        return self.then(Take(self.stage, num_examples))


def _as_selector(selector: str | Selector | None) -> Selector | None:
    """Return ``selector`` as a selector."""
    return Selector(selector) if isinstance(selector, str) else selector
