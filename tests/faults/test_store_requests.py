"""Runs with results on an object store ask it at a bounded rate."""

import time
from contextlib import contextmanager

import pytest

from dagster_dataops import data_register
from tests.execution.helpers import node, run, write_input
from tests.object_stores import FakeStore, machine


@data_register("data.store_requests")
def work(record):
    time.sleep(0.0015)
    if record["n"] % 50 == 3:
        raise ValueError("three")
    return {**record, "square": record["n"] ** 2}


@pytest.mark.slow
def test_requests_are_at_most_four_a_second(tmp_path):
    requests = []

    @contextmanager
    def counted():
        requests.append(time.monotonic())
        yield

    dataset = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(1500)])
    root = machine(tmp_path / "scratch", FakeStore(counted))
    began = time.monotonic()

    run(work(_concurrency_mode="single"), dataset, node(root, "work"), flush_seconds=0)

    seconds = time.monotonic() - began
    assert seconds > 2
    assert len(requests) <= 20 + 4 * seconds
