"""Go to a far position of a stream, and read one item there, in a separate process.

``python -m benchmarks.restoring SPECIFICATION``, with the keys position and workers. The items are
numbers, mapped. The position is taken from a stream that begins shortly before it.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from benchmarks.reporting import Stopwatch
from dagster_dataops import DataLoader2, DataPipeline, MultiProcessingReadingService

_AHEAD = 1000  # items


def doubled(number: int) -> int:
    """Return twice a number."""
    return 2 * number


def loader(start: int, workers: int) -> DataLoader2:
    """Return a loader of the numbers from ``start`` on."""
    stream = DataPipeline.count(start).shuffle(100).sharding_filter().map(doubled)
    return DataLoader2(stream, reading_service=MultiProcessingReadingService(workers))


def far_state(position: int) -> tuple[Mapping[str, Any], int]:
    """Return the state of a loader that began at 0 and is at ``position``, and its next item."""
    near, far = loader(position - _AHEAD, 0), loader(0, 0).state_dict()
    items = iter(near)
    for _ in islice(items, _AHEAD):
        pass
    place = near.state_dict()["stream"]["position"]
    return {**far, "stream": {**far["stream"], "position": place}}, next(items)


def main() -> None:
    """Measure the time from the construction of the loader to its first item."""
    state, expected = far_state(Stopwatch().specification["position"])
    watch = Stopwatch()
    with loader(0, watch.specification["workers"]) as restored:
        restored.load_state_dict(state)
        found = next(iter(restored))
        if found != expected:
            msg = f"the item is {found}, not {expected}"
            raise ValueError(msg)
        watch.finish([], items=1)


if __name__ == "__main__":
    main()
