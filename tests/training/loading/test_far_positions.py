"""Tests that a loader goes to a position far into a stream without reading what is before it."""

import time
from itertools import islice

import pytest

from dagster_dataops import DataLoader2, DataPipeline, MultiProcessingReadingService
from dagster_dataops.streams.core.seeds import seeded_random
from dagster_dataops.streams.stages.random_order import Permutation
from tests.streams.functions import double
from tests.streams.numbered_source import numbers_by_number

FAR = 100_000_000
MOST_SECONDS = 0.5  # of CPU time: that of a busy machine says nothing


def timed_first(loader, state):
    """Load a state; return the first item and the CPU seconds of both."""
    began = time.process_time()
    loader.load_state_dict(state)
    return next(iter(loader)), time.process_time() - began


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_read_in_order_goes_on_at_item_100_million(workers):
    def loader(start, count):
        stream = DataPipeline.count(start).shuffle(50).sharding_filter().map(double)
        return DataLoader2(stream, reading_service=MultiProcessingReadingService(count))

    near = loader(FAR, 0)  # its position is the same, counted from elsewhere
    items = iter(near)
    list(islice(items, 120))
    state = loader(0, 0).state_dict()
    state["stream"]["position"] = near.state_dict()["stream"]["position"]
    with loader(0, workers) as far:
        found, seconds = timed_first(far, state)
        assert found == next(items)
    assert seconds < MOST_SECONDS


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_shuffled_by_number_goes_on_near_the_end_of_100_million_items(workers):
    stream = numbers_by_number(FAR).shuffle(0, seed=5).sharding_filter().map(double)
    loader = DataLoader2(stream, reading_service=MultiProcessingReadingService(workers))
    state = loader.state_dict()
    (shuffled,) = state["stream"]["position"]["inputs"]
    assert shuffled["passed"] == 0
    shuffled["passed"] = FAR - 3
    with loader:
        found, seconds = timed_first(loader, state)
    order = Permutation(FAR, seeded_random(5, 0, 0))
    assert found == 2 * order.values_at(range(FAR - 3, FAR))[0]
    assert seconds < MOST_SECONDS
