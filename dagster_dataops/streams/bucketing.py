"""``bucket``, ``bucket_by_length`` and ``dynamic_bucket``: lists of items."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.selectors.selector import Selector
from dagster_dataops.state.values import from_json, to_json
from dagster_dataops.streams.failures import Counter
from dagster_dataops.streams.mapping import with_failures, without_failures
from dagster_dataops.streams.stage import Cursor, Opening, State, Step, StepCursor

_END: Final = object()


@dataclass(frozen=True, eq=False)
class Bucket(Step):
    """Lists of ``bucket_size`` items."""

    name: ClassVar[str] = "bucket"
    bucket_size: int
    drop_remainder: bool

    @override
    def open(self, opening: Opening) -> Cursor:
        return BucketCursor(self.upstream.open(opening), self)


class BucketCursor(StepCursor):
    """Holds nothing between two lists."""

    def __init__(self, upstream: Cursor, stage: Bucket) -> None:
        super().__init__(upstream)
        self._stage = stage

    @override
    def items(self) -> Iterator[Any]:
        items, size = self.upstream.items(), self._stage.bucket_size
        while bucket := list(islice(items, size)):
            if len(bucket) == size or not self._stage.drop_remainder:
                yield bucket


@dataclass(frozen=True, eq=False)
class BucketByLength(Step):
    """Lists of items of like length; sizes are (how many, up to which length), shortest first."""

    name: ClassVar[str] = "bucket_by_length"
    bucket_sizes: tuple[tuple[int, int], ...]
    selector: Selector | None
    min_data_len: int
    skip_below_min_examples: bool
    skip_above_max_examples: bool
    drop_remainder: bool

    @override
    def open(self, opening: Opening) -> Cursor:
        counter = opening.failures.counter(self.name)
        return BucketByLengthCursor(self.upstream.open(opening), self, counter)


class BucketByLengthCursor(StepCursor):
    """Its position holds the items of buckets that are not full."""

    def __init__(self, upstream: Cursor, stage: BucketByLength, counter: Counter) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._counter = counter
        self._buckets: list[list[Any]] = [[] for _ in stage.bucket_sizes]

    @override
    def items(self) -> Iterator[Any]:
        for item in self.upstream.items():
            try:
                at = self._place(item)
            except Exception as error:  # noqa: BLE001 - a length may be anything
                self._counter.settle(item, error)
                continue
            if at is not None:
                bucket = self._buckets[at]
                bucket.append(item)
                if len(bucket) >= self._stage.bucket_sizes[at][0]:
                    self._buckets[at] = []
                    yield bucket
        yield from self._rest()

    def _place(self, item: Any) -> int | None:
        """Return the bucket for ``item``; ``None`` if it is passed over.

        Raises:
            DataPipelineError: It is too short or too long.
        """
        stage = self._stage
        values = [item] if stage.selector is None else stage.selector.values(item)
        length = max(map(_length, values), default=0)
        if length < stage.min_data_len:
            if stage.skip_below_min_examples:
                return None
            msg = f"bucket_by_length: length {length} is below min_data_len {stage.min_data_len}"
            raise DataPipelineError(msg)
        for at, (_, longest) in enumerate(stage.bucket_sizes):
            if length <= longest:
                return at
        if stage.skip_above_max_examples:
            return None
        longest = stage.bucket_sizes[-1][1]
        msg = f"bucket_by_length: length {length} is above {longest}, that of the last bucket"
        raise DataPipelineError(msg)

    def _rest(self) -> Iterator[Any]:
        """Yield what is left, from the longest down, topped up with the last of shorter ones."""
        for at in range(len(self._buckets) - 1, -1, -1):
            bucket, size = self._buckets[at], self._stage.bucket_sizes[at][0]
            if not bucket:
                continue
            for shorter in reversed(self._buckets[:at]):
                while shorter and len(bucket) < size:
                    bucket.append(shorter.pop())
            self._buckets[at] = []
            if self._stage.drop_remainder and len(bucket) != size:
                return
            yield bucket

    @override
    def state(self) -> State:
        held = [to_json(bucket) for bucket in self._buckets]
        return with_failures(self._counter, [held, self.upstream.state()])

    @override
    def restore(self, state: State) -> None:
        held, inner = without_failures(self._counter, state)
        self._buckets = [from_json(bucket) for bucket in held]
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._buckets = [[] for _ in self._stage.bucket_sizes]
        super().restart(reset_rng=reset_rng)


def _length(value: Any) -> int:
    if isinstance(value, int):
        return value
    shape = getattr(value, "shape", None)
    if shape:
        return int(shape[0])
    try:
        return len(value)
    except TypeError:
        msg = f"bucket_by_length: a {type(value).__name__} has no length; select one that has"
        raise DataPipelineError(msg) from None


@dataclass(frozen=True, eq=False)
class DynamicBucket(Step):
    """Lists of items whose costs add up to ``threshold``."""

    name: ClassVar[str] = "dynamic_bucket"
    threshold: float
    cost_fn: Callable[[Any], float]
    bucket_creation_fn: Callable[[list[Any]], tuple[list[Any], list[Any]]] | None
    min_num_examples: int | None
    max_num_examples: int | None
    drop_remainder: bool

    @override
    def open(self, opening: Opening) -> Cursor:
        counter = opening.failures.counter(self.name)
        return DynamicBucketCursor(self.upstream.open(opening), self, counter)


class DynamicBucketCursor(StepCursor):
    """Its position holds lists that wait, and what ``bucket_creation_fn`` has left over."""

    def __init__(self, upstream: Cursor, stage: DynamicBucket, counter: Counter) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._counter = counter
        self._left: list[Any] = []
        self._waiting: deque[Any] = deque()

    @override
    def items(self) -> Iterator[Any]:
        upstream, make = self.upstream.items(), self._stage.bucket_creation_fn
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            bucket, ready = self._gathered(upstream)
            if not bucket or (not ready and self._stage.drop_remainder):
                return
            if make is None or not ready:
                yield bucket
            else:
                buckets, left = make(bucket)
                if not buckets:
                    raise DataPipelineError("dynamic_bucket: bucket_creation_fn made no bucket")
                self._waiting, self._left = deque(buckets), list(left)

    def _gathered(self, upstream: Iterator[Any]) -> tuple[list[Any], bool]:
        """Return the next list, and whether it is full."""
        bucket, self._left = self._left, []
        cost = 0.0
        while not self._is_full(cost, len(bucket)):
            item = next(upstream, _END)
            if item is _END:
                return bucket, False
            try:
                cost += self._stage.cost_fn(item)
            except Exception as error:  # noqa: BLE001 - whatever the function raises
                self._counter.settle(item, error)
            else:
                bucket.append(item)
        return bucket, True

    def _is_full(self, cost: float, size: int) -> bool:
        least, most = self._stage.min_num_examples, self._stage.max_num_examples
        enough = cost >= self._stage.threshold and (least is None or size >= least)
        return enough or (most is not None and size >= most)

    @override
    def state(self) -> State:
        held = [to_json(list(self._waiting)), to_json(self._left)]
        return with_failures(self._counter, [*held, self.upstream.state()])

    @override
    def restore(self, state: State) -> None:
        waiting, left, inner = without_failures(self._counter, state)
        self._waiting, self._left = deque(from_json(waiting)), from_json(left)
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._waiting, self._left = deque(), []
        super().restart(reset_rng=reset_rng)
