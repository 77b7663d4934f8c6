"""Tests of dagster_dataops.streams.parallel.parallel_map, calling and prefetching."""

import threading
from itertools import islice

import pytest

from tests.faults.crashing import HANG_SECONDS, wait_until
from tests.streams.parallel.sources import numbers


def test_the_requested_number_of_calls_runs_at_once():
    barrier = threading.Barrier(3)
    meeting = numbers(6).map(lambda x: barrier.wait(HANG_SECONDS), num_parallel_calls=3)
    assert len(list(meeting)) == 6


def test_nothing_is_left_behind_by_a_stream_that_is_let_go():
    before = threading.active_count()
    stream = numbers(1000).map(str, num_parallel_calls=2).prefetch(3).and_return()
    assert list(islice(stream, 3)) == ["0", "1", "2"]
    del stream
    wait_until(lambda: threading.active_count() <= before, 10, "the end of its threads")


def test_an_error_comes_after_the_items_before_it():
    stream = numbers(8).map(lambda x: 1 // (x - 5)).prefetch(8).and_return()
    iterator = iter(stream)
    assert len(list(islice(iterator, 5))) == 5
    with pytest.raises(ZeroDivisionError):
        next(iterator)
