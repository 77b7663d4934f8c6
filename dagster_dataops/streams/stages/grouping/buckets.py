"""``bucket``, ``dynamic_bucket`` and ``bucket_by_length``: group items into lists."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final

from dagster_dataops.errors import DataPipelineError, StreamDefinitionError
from dagster_dataops.foundation.override import override
from dagster_dataops.foundation.selectors.selector import Selector
from dagster_dataops.streams.core.arguments import check_count
from dagster_dataops.streams.core.stage import State, UnaryStage
from dagster_dataops.streams.core.state_values import from_json, to_json

_NAME = "create_bucket_sizes"


def create_bucket_sizes(
    *,
    max_num_elements: int,
    max_seq_len: int,
    min_seq_len: int = 1,
    num_seqs_multiple_of: int = 1,
) -> list[tuple[int, int]]:
    """Return buckets for ``bucket_by_length``: pairs (number of items, maximum length).

    A bucket of ``n`` items has the longest length for which ``n`` items have at most
    ``max_num_elements`` elements, all padded to that length. Shorter items come first.

    Args:
        max_num_elements: The maximum number of elements of a bucket; a multiple of ``max_seq_len``.
        max_seq_len: The length of the longest items.
        min_seq_len: The length of the shortest items, at least 1.
        num_seqs_multiple_of: The number of items of a larger bucket is a multiple of this number.

    Raises:
        StreamDefinitionError: An argument is invalid.

    Example:
        >>> create_bucket_sizes(max_num_elements=16, max_seq_len=4)
        [(16, 1), (8, 2), (5, 3), (4, 4)]
    """
    for name, value in (
        ("max_num_elements", max_num_elements),
        ("max_seq_len", max_seq_len),
        ("min_seq_len", min_seq_len),
        ("num_seqs_multiple_of", num_seqs_multiple_of),
    ):
        check_count(_NAME, name, value, 1)
    if min_seq_len > max_seq_len:
        reason = f"min_seq_len is {min_seq_len}, above max_seq_len, {max_seq_len}"
        raise StreamDefinitionError(_NAME, reason)
    if max_num_elements % max_seq_len:
        reason = (
            f"max_num_elements, {max_num_elements}, is no multiple of max_seq_len, {max_seq_len}"
        )
        raise StreamDefinitionError(_NAME, reason)
    sizes, length = [], 0
    while length < max_seq_len:
        count = max_num_elements // (length + 1)
        length = max_num_elements // count
        if length >= min_seq_len:
            more = count % num_seqs_multiple_of if count > num_seqs_multiple_of else 0
            sizes.append((count - more, length))
    return sizes


_END: Final = object()


@dataclass(eq=False)
class Bucket(UnaryStage):
    """Group items into lists of ``bucket_size``. No item is held between two lists."""

    name: ClassVar[str] = "bucket"
    keeps_step: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    bucket_size: int
    drop_remainder: bool

    @override
    def is_elastic(self) -> bool:
        return not self.drop_remainder  # each rank drops its own last items

    @override
    def items(self) -> Iterator[Any]:
        items, size = self.source.items(), self.bucket_size
        while bucket := list(islice(items, size)):
            if len(bucket) == size or not self.drop_remainder:
                yield bucket


@dataclass(eq=False)
class DynamicBucket(UnaryStage):
    """Group items into lists whose costs add up to ``threshold``.

    Finished lists and the items that ``bucket_creation_fn`` left over are saved.
    """

    name: ClassVar[str] = "dynamic_bucket"
    saved: ClassVar[tuple[str, ...]] = ("failed", "held")
    threshold: float
    cost_fn: Callable[[Any], float]
    bucket_creation_fn: Callable[[list[Any]], tuple[list[Any], list[Any]]] | None
    min_num_examples: int | None
    max_num_examples: int | None
    drop_remainder: bool

    @override
    def reset(self) -> None:
        self._left_over: list[Any] = []
        self._finished: deque[Any] = deque()

    @property
    def held(self) -> State:
        """The held items, as JSON."""
        return [to_json(list(self._finished)), to_json(self._left_over)]

    @held.setter
    def held(self, held: State) -> None:
        finished, left_over = map(from_json, held)
        self._finished, self._left_over = deque(finished), left_over

    @override
    def items(self) -> Iterator[Any]:
        upstream, make = self.source.items(), self.bucket_creation_fn
        while True:
            while self._finished:
                yield self._finished.popleft()
            bucket, ready = self._next_bucket(upstream)
            if not bucket or (not ready and self.drop_remainder):
                return
            if make is None or not ready:
                yield bucket
            else:
                buckets, left = make(bucket)
                if not buckets:
                    raise DataPipelineError("dynamic_bucket: bucket_creation_fn returned no bucket")
                self._finished, self._left_over = deque(buckets), list(left)

    def _next_bucket(self, upstream: Iterator[Any]) -> tuple[list[Any], bool]:
        """Return the next list, and whether it is full."""
        bucket, self._left_over = self._left_over, []
        cost, last = 0.0, self.counter.before
        while not self._is_full(cost, len(bucket)):
            item = next(upstream, _END)
            if item is _END:
                return bucket, False
            try:
                cost += self.cost_fn(item)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                last = self.counter.handle(item, error, last)
            else:
                last = None
                bucket.append(item)
        self.counter.end(last)
        return bucket, True

    def _is_full(self, cost: float, size: int) -> bool:
        least, most = self.min_num_examples, self.max_num_examples
        enough = cost >= self.threshold and (least is None or size >= least)
        return enough or (most is not None and size >= most)


@dataclass(eq=False)
class BucketByLength(UnaryStage):
    """Group items of similar length.

    ``bucket_sizes`` holds pairs (number of items, maximum length), sorted by length. The items of
    the buckets that are not yet full are saved.
    """

    name: ClassVar[str] = "bucket_by_length"
    saved: ClassVar[tuple[str, ...]] = ("failed", "held")
    bucket_sizes: tuple[tuple[int, int], ...]
    selector: Selector | None
    min_data_len: int
    skip_below_min_examples: bool
    skip_above_max_examples: bool
    drop_remainder: bool

    @override
    def reset(self) -> None:
        self._buckets: list[list[Any]] = [[] for _ in self.bucket_sizes]

    @property
    def held(self) -> State:
        """The items of each bucket, as JSON."""
        return [to_json(bucket) for bucket in self._buckets]

    @held.setter
    def held(self, held: State) -> None:
        self._buckets = [from_json(bucket) for bucket in held]

    @override
    def items(self) -> Iterator[Any]:
        at: Any = None
        for item in self.source.items():
            try:
                at = self._bucket_index(item)
            except Exception as error:  # noqa: BLE001 - a length may have any type
                at = self.counter.handle(item, error, at)
                continue
            if at is not None:
                bucket = self._buckets[at]
                bucket.append(item)
                if len(bucket) >= self.bucket_sizes[at][0]:
                    self._buckets[at] = []
                    yield bucket
        yield from self._remaining_buckets()

    def _bucket_index(self, item: Any) -> int | None:
        """Return the index of the bucket for ``item``; ``None`` if the item is skipped."""
        values = [item] if self.selector is None else self.selector.values(item)
        length = max(map(_length, values), default=0)
        if length < self.min_data_len:
            if self.skip_below_min_examples:
                return None
            msg = f"bucket_by_length: length {length} is below min_data_len {self.min_data_len}"
            raise DataPipelineError(msg)
        for at, (_, longest) in enumerate(self.bucket_sizes):
            if length <= longest:
                return at
        if self.skip_above_max_examples:
            return None
        longest = self.bucket_sizes[-1][1]
        msg = f"bucket_by_length: length {length} is above {longest}, the limit of the last bucket"
        raise DataPipelineError(msg)

    def _remaining_buckets(self) -> Iterator[Any]:
        """Yield the incomplete buckets, longest items first.

        Each is filled up with the last items of the buckets of shorter items.
        """
        for at in range(len(self._buckets) - 1, -1, -1):
            bucket, size = self._buckets[at], self.bucket_sizes[at][0]
            if not bucket:
                continue
            for shorter in reversed(self._buckets[:at]):
                while shorter and len(bucket) < size:
                    bucket.append(shorter.pop())
            self._buckets[at] = []
            if self.drop_remainder and len(bucket) != size:
                return
            yield bucket


def _length(value: Any) -> int:
    if isinstance(value, int):
        return value
    shape = getattr(value, "shape", None)
    if shape:
        return int(shape[0])
    try:
        return len(value)
    except TypeError:
        msg = f"bucket_by_length: a {type(value).__name__} has no length; select a value with one"
        raise DataPipelineError(msg) from None
