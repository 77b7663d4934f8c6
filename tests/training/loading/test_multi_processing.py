"""Tests of dagster_dataops.training.loading.multi_processing."""

import gc
import json
import multiprocessing
import os
import time
from itertools import islice

import pytest

from dagster_dataops import (
    DataLoader2,
    MultiProcessingReadingService,
    read_sequence,
)
from dagster_dataops.errors import StreamDefinitionError
from tests.streams.functions import double, fails_at_5


def loader(stream, workers, **options):
    service = MultiProcessingReadingService(workers, **options)
    return DataLoader2(stream, reading_service=service)


def stream(count=30):
    return read_sequence(list(range(count))).shuffle(0).sharding_filter().map(double).bucket(3)


@pytest.mark.slow
def test_workers_change_neither_items_nor_order_in_any_epoch():
    expected = DataLoader2(stream())
    with loader(stream(), 2, worker_prefetch_cnt=1) as made:
        assert [list(made), list(made)] == [list(expected), list(expected)]


@pytest.mark.slow
def test_states_go_from_any_number_of_workers_to_any_other():
    expected = list(DataLoader2(stream()))
    with loader(stream(), 2) as made:
        head, state = list(islice(made, 4)), json.loads(json.dumps(made.state_dict()))
    with DataLoader2(stream()) as alone:
        list(islice(alone, 4))
        assert alone.state_dict() == state
    for workers in (0, 1):
        with loader(stream(), workers) as resumed:
            resumed.load_state_dict(state)
            assert head + list(resumed) == expected


def test_finished_tasks_wait_for_a_slow_one_before_them_as_far_as_is_allowed(tmp_path):
    done = tmp_path / "done"
    done.touch()

    def noted(number):
        if number:
            with done.open("a") as file:
                file.write(".")
        else:
            wait_until(lambda: done.stat().st_size >= 4)
        return number

    numbers = read_sequence(list(range(40))).sharding_filter().map(noted)
    with loader(numbers, 2, worker_prefetch_cnt=1, main_prefetch_cnt=3) as made:
        assert list(made) == list(range(40))


def wait_until(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_workers_end_with_their_epoch_even_if_its_iterator_is_kept():
    made = loader(stream(), 1)
    old = iter(made)
    next(old)
    new = iter(made)
    next(new)
    assert len(multiprocessing.active_children()) == 1
    made.shutdown()
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_no_worker_is_left():
    made = loader(stream(), 2)
    next(iter(made))
    assert multiprocessing.active_children()
    made.shutdown()
    assert not multiprocessing.active_children()
    abandoned = loader(stream(), 1)
    next(iter(abandoned))
    next(iter(abandoned))
    assert len(multiprocessing.active_children()) == 1
    list(abandoned)
    assert not multiprocessing.active_children()


def test_workers_end_with_their_loader_without_garbage_collection():
    gc.disable()
    try:
        made = loader(stream(), 2)
        items = iter(made)
        next(items)
        del made
        assert multiprocessing.active_children()
        del items
        assert not multiprocessing.active_children()
    finally:
        gc.enable()


@pytest.mark.slow
def test_a_fork_does_not_end_the_service_of_its_parent():
    made = loader(stream(), 2)
    items = iter(made)
    next(items)
    alive = multiprocessing.active_children()
    child = os.fork()
    if not child:
        made.__del__()
        os._exit(0)
    os.waitpid(child, 0)
    assert multiprocessing.active_children() == alive
    assert next(items) == list(stream())[1]
    made.shutdown()


def test_an_error_in_a_worker_comes_behind_the_items_before_it_and_ends_the_loader():
    made = loader(read_sequence(list(range(9))).sharding_filter().map(fails_at_5), 2)
    items = iter(made)
    assert [next(items) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="five"):
        next(items)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    "options", [{"num_workers": -1}, {"worker_prefetch_cnt": -1}, {"main_prefetch_cnt": -1}]
)
def test_invalid_numbers_are_refused(options):
    with pytest.raises(StreamDefinitionError, match=next(iter(options))):
        MultiProcessingReadingService(**options)
