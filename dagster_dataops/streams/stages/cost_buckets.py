"""``dynamic_bucket``: group items into lists by their total cost."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import Cursor, ReadContext, State, UnaryCursor, UnaryStage
from dagster_dataops.streams.core.state_values import from_json, to_json
from dagster_dataops.streams.stages.mapping import with_failures, without_failures

_END: Final = object()


@dataclass(frozen=True, eq=False)
class DynamicBucket(UnaryStage):
    """Group items into lists whose costs add up to ``threshold``."""

    name: ClassVar[str] = "dynamic_bucket"
    threshold: float
    cost_fn: Callable[[Any], float]
    bucket_creation_fn: Callable[[list[Any]], tuple[list[Any], list[Any]]] | None
    min_num_examples: int | None
    max_num_examples: int | None
    drop_remainder: bool

    @override
    def open(self, context: ReadContext) -> Cursor:
        counter = context.failures.counter(self.name)
        return DynamicBucketCursor(self.upstream.open(context), self, counter)


class DynamicBucketCursor(UnaryCursor):
    """The state holds finished lists and the items that ``bucket_creation_fn`` left over."""

    def __init__(self, upstream: Cursor, stage: DynamicBucket, counter: FailureCounter) -> None:
        super().__init__(upstream)
        self._stage = stage
        self._counter = counter
        self._left_over: list[Any] = []
        self._finished: deque[Any] = deque()

    @override
    def items(self) -> Iterator[Any]:
        upstream, make = self.upstream.items(), self._stage.bucket_creation_fn
        while True:
            while self._finished:
                yield self._finished.popleft()
            bucket, ready = self._next_bucket(upstream)
            if not bucket or (not ready and self._stage.drop_remainder):
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
        cost = 0.0
        while not self._is_full(cost, len(bucket)):
            item = next(upstream, _END)
            if item is _END:
                return bucket, False
            try:
                cost += self._stage.cost_fn(item)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
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
        held = [to_json(list(self._finished)), to_json(self._left_over)]
        return with_failures(self._counter, [*held, self.upstream.state()])

    @override
    def restore(self, state: State) -> None:
        waiting, left, inner = without_failures(self._counter, state)
        self._finished, self._left_over = deque(from_json(waiting)), from_json(left)
        self.upstream.restore(inner)

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._finished, self._left_over = deque(), []
        super().restart(reset_rng=reset_rng)
