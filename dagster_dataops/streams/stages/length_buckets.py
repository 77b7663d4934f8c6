"""``bucket_by_length``: group items of similar length."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.selectors.selector import Selector
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryCursor, UnaryStage
from dagster_dataops.streams.core.state_values import from_json, to_json
from dagster_dataops.streams.stages.mapping import with_failures, without_failures


@dataclass(frozen=True, eq=False)
class BucketByLength(UnaryStage):
    """Group items of similar length.

    ``bucket_sizes`` holds pairs (number of items, maximum length), sorted by length.
    """

    name: ClassVar[str] = "bucket_by_length"
    bucket_sizes: tuple[tuple[int, int], ...]
    selector: Selector | None
    min_data_len: int
    skip_below_min_examples: bool
    skip_above_max_examples: bool
    drop_remainder: bool

    @override
    def open(self, context: ReadContext) -> Cursor:
        counter = context.failures.counter(self.name)
        return BucketByLengthCursor(self.upstream.open(context), self, counter)


class BucketByLengthCursor(UnaryCursor):
    """The state holds the items of the buckets that are not yet full."""

    def __init__(self, upstream: Cursor, stage: BucketByLength, counter: FailureCounter) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._counter = counter
        self._buckets: list[list[Any]] = [[] for _ in stage.bucket_sizes]

    @override
    def items(self) -> Iterator[Any]:
        for item in self.upstream.items():
            try:
                at = self._bucket_index(item)
            except Exception as error:  # noqa: BLE001 - a length may have any type
                self._counter.settle(item, error)
                continue
            if at is not None:
                bucket = self._buckets[at]
                bucket.append(item)
                if len(bucket) >= self._stage.bucket_sizes[at][0]:
                    self._buckets[at] = []
                    yield bucket
        yield from self._remaining_buckets()

    def _bucket_index(self, item: Any) -> int | None:
        """Return the index of the bucket for ``item``; ``None`` if the item is skipped.

        Raises:
            DataPipelineError: The item is too short or too long.
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
        msg = f"bucket_by_length: length {length} is above {longest}, the limit of the last bucket"
        raise DataPipelineError(msg)

    def _remaining_buckets(self) -> Iterator[Any]:
        """Yield the incomplete buckets, longest items first.

        Each is filled up with the last items of the buckets of shorter items.
        """
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
        msg = f"bucket_by_length: a {type(value).__name__} has no length; select a value with one"
        raise DataPipelineError(msg) from None
