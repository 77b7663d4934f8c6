"""Results of concurrent calls as they finish."""

import json
import threading
from itertools import islice

from tests.faults.crashing import HANG_SECONDS
from tests.streams.parallel.sources import numbers


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
