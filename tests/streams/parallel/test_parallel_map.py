"""``map`` with concurrent calls: results in item order, or as the calls finish."""

import asyncio
import gc
import json
import os
import threading
from itertools import islice

import pytest

from dagster_dataops import read_sequence
from tests.faults.crashing import HANG_SECONDS, wait_until
from tests.finalized import garbage_of_this_process


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


def test_results_are_in_order_for_calls_of_any_duration():
    done = threading.Event()

    def call(x):
        if x == 0:
            assert done.wait(HANG_SECONDS)
        if x == 5:
            done.set()
        return x

    stream = numbers(20).map(call, num_parallel_calls=4)
    assert list(stream) == list(range(20))


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("bad", [0, 3, 7])
def test_a_failure_discards_no_neighbour(deterministic, bad):
    stream = numbers(8).map(
        lambda x: 1 // (x - bad), num_parallel_calls=4, deterministic=deterministic
    )
    items = list(stream.and_return(on_error="skip"))
    expected = [1 // (x - bad) for x in range(8) if x != bad]
    assert sorted(items) == sorted(expected)
    assert not deterministic or items == expected


def test_results_before_a_failure_are_yielded_first():
    stream = numbers(8).map(lambda x: 1 // (x - 5), num_parallel_calls=4).and_return()
    items = []
    with pytest.raises(ZeroDivisionError):
        items.extend(stream)
    iterator = iter(numbers(8).map(lambda x: 1 // (x - 5), num_parallel_calls=4))
    assert len(list(islice(iterator, 5))) == 5
    below = numbers(8).map(lambda x: 1 // (x - 5)).map(str, num_parallel_calls=4)
    assert len(list(islice(iter(below), 5))) == 5


def test_one_slow_call_does_not_hold_up_results_in_any_order():
    done = threading.Event()

    def call(x):
        if x == 0:
            assert done.wait(HANG_SECONDS)
        return x

    items = []
    for item in numbers(30).map(call, num_parallel_calls=2, deterministic=False):
        items.append(item)
        if len(items) == 29:
            done.set()
    assert items[-1] == 0
    assert sorted(items) == list(range(30))


def test_unordered_maps_resume_with_the_items_not_yet_yielded():
    release = threading.Event()

    def call(x):
        if x == 1:
            release.wait(HANG_SECONDS)
        return x

    def build():
        return numbers(12).map(call, num_parallel_calls=3, deterministic=False).and_return()

    stream = build()
    first = list(islice(stream, 6))
    state = json.loads(json.dumps(stream.state_dict()))
    release.set()
    assert 1 not in first
    again = build()
    again.load_state_dict(state)
    half = list(islice(again, 3))
    third = build()
    third.load_state_dict(json.loads(json.dumps(again.state_dict())))
    assert sorted(first + half + list(third)) == list(range(12))


def test_processes_call_functions_that_compute():
    stream = numbers(6).map(lambda x: (x * 2, os.getpid()), num_parallel_calls=2, mode="process")
    found = list(stream)
    assert [x for x, _ in found] == [0, 2, 4, 6, 8, 10]
    assert os.getpid() not in {pid for _, pid in found}


@pytest.mark.slow
def test_processes_do_not_finalize_the_garbage_of_their_parent(tmp_path):
    def collect(x):
        gc.collect()
        return x

    with garbage_of_this_process(tmp_path / "finalized"):
        assert list(numbers(6).map(collect, num_parallel_calls=2, mode="process")) == [*range(6)]


def test_processes_apply_selectors():
    stream = read_sequence([{"a": [1, 2]}]).map(
        lambda x: x + 1, selector="a[*]", num_parallel_calls=2, mode="process"
    )
    assert list(stream) == [{"a": [2, 3]}]


def test_coroutines_are_awaited_together():
    running, most = 0, 0

    async def call(x):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return x * 2

    assert list(numbers(40).map(call, num_parallel_calls=10)) == [x * 2 for x in range(40)]
    assert 5 <= most <= 10


START_METHODS = """
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from dagster_dataops.foundation.concurrency.background import background
from dagster_dataops.streams.parallel.callers import process_caller

def start_method():
    caller = process_caller(abs, 1)
    try:
        return caller._pool._mp_context.get_start_method()
    finally:
        caller.close()

ended = Event()
background.run(ended.wait)
print(start_method())
ended.set()
background.finish()
with ThreadPoolExecutor(1) as pool:
    print(pool.submit(start_method).result())
"""


def test_processes_are_forked_beside_waiting_threads_and_started_afresh_beside_others(
    run_python,
):
    assert run_python(START_METHODS).split() == ["fork", "spawn"]


def numbers(count):
    return read_sequence(list(range(count)))
