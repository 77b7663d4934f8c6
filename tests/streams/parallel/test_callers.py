"""Threads, processes and event loops that call a function."""

import asyncio
import gc
import os

import pytest

from dagster_dataops import read_sequence
from tests.finalized import garbage_of_this_process
from tests.streams.parallel.sources import numbers


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
