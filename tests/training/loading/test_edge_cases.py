"""Tests of loaders at the edges: few items, no items, no end, functions and workers that fail."""

import multiprocessing
import os
import threading
import time
from itertools import chain, islice

import pytest

from dagster_dataops import (
    DataLoader2,
    DataPipeline,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    read_sequence,
)
from dagster_dataops.errors import StreamWorkerError
from dagster_dataops.streams.core.seeds import seeded_random
from dagster_dataops.streams.stages.random_order import Permutation
from tests.streams.functions import double
from tests.streams.numbered_source import numbers_by_number
from tests.streams.sharding.processes import shard_process

MARKS = ["sharding_filter", "sharding_round_robin_dispatch"]


def loader(items, mark="sharding_filter", *, ranks=None, workers=2, fn=double):
    """Return a loader of mapped items, read by one rank of several if ``ranks`` is given."""
    services = [MultiProcessingReadingService(workers)]
    if ranks is not None:
        services.insert(0, DistributedReadingService(*ranks))
    stream = getattr(items, mark)().map(fn)
    return DataLoader2(stream, reading_service=SequentialReadingService(*services))


@pytest.mark.slow
@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_with_more_workers_or_ranks_than_items_every_epoch_is_whole(mark, count):
    items = read_sequence(list(range(count))).shuffle(0)
    with DataLoader2(items.map(double)) as alone, loader(items, mark, workers=4) as made:
        for _ in range(2):
            assert list(made) == list(alone)
            assert made.state_dict() == alone.state_dict()
    ranks = [loader(items, mark, ranks=(rank, 3), workers=1) for rank in range(3)]
    found = [list(one) for one in ranks]
    assert sorted(chain.from_iterable(found)) == [double(number) for number in range(count)]
    assert [one.state_dict() for one in ranks] == [ranks[0].state_dict()] * 3
    for one in ranks:
        one.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("mark", MARKS)
def test_an_endless_stream_is_read_as_far_as_it_is_asked_and_goes_on(mark):
    with loader(DataPipeline.count(), mark) as first:
        assert list(islice(first, 100)) == list(range(0, 200, 2))
        state = first.state_dict()
    with loader(DataPipeline.count(), mark, workers=3) as second:
        second.load_state_dict(state)
        assert list(islice(second, 3)) == [200, 202, 204]


@pytest.mark.slow
@pytest.mark.parametrize("mark", MARKS)
def test_a_consumer_that_stops_early_leaves_no_process_and_loses_no_item(mark):
    before = multiprocessing.active_children()
    made = loader(read_sequence(list(range(500))), mark)
    for item in made:
        if item == 20:
            break
    state = made.state_dict()
    del made
    assert multiprocessing.active_children() == before
    with loader(read_sequence(list(range(500))), mark) as other:
        other.load_state_dict(state)
        assert next(iter(other)) == 22


def test_a_function_that_cannot_be_pickled_is_refused_where_workers_are_not_forked():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()  # so that forking is not safe
    lock = threading.Lock()
    made = loader(read_sequence([1, 2]), fn=lambda item: item if lock else None)
    try:
        with pytest.raises(StreamWorkerError, match=r"stage map: its functions .*lock.*inside"):
            list(made)
    finally:
        stop.set()
        thread.join()


def test_workers_that_die_at_their_start_end_the_loader_with_their_exit_code(monkeypatch):
    monkeypatch.setattr(shard_process, "serve", lambda start, ends, inherited: os._exit(4))
    before = multiprocessing.active_children()
    made = loader(read_sequence([1, 2]))
    with pytest.raises(StreamWorkerError, match=r"3 worker processes .* at their start.*code 4"):
        list(made)
    assert multiprocessing.active_children() == before


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
