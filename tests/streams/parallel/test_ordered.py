"""Results of concurrent calls in the order of their items."""

import threading
from itertools import islice

import pytest

from tests.faults.crashing import HANG_SECONDS
from tests.streams.parallel.sources import numbers


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
