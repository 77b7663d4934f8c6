"""``dynamic_bucket``: group items into lists by their total cost."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.errors import DataPipelineError
from dagster_dataops.streams.core.stage import State, UnaryStage
from dagster_dataops.streams.core.state_values import from_json, to_json

_END: Final = object()


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
        cost = 0.0
        while not self._is_full(cost, len(bucket)):
            item = next(upstream, _END)
            if item is _END:
                return bucket, False
            try:
                cost += self.cost_fn(item)
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                self.counter.settle(item, error)
            else:
                bucket.append(item)
        return bucket, True

    def _is_full(self, cost: float, size: int) -> bool:
        least, most = self.min_num_examples, self.max_num_examples
        enough = cost >= self.threshold and (least is None or size >= least)
        return enough or (most is not None and size >= most)
