"""Tests of sets of positions that are stored as intervals."""

import random

import pytest

from dagster_dataops.execution.leases.interval_set import IntervalSet
from dagster_dataops.workplaces import Interval


def _positions(intervals: IntervalSet) -> set[int]:
    return {position for start, end in intervals for position in range(start, end)}


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_a_set_of_positions(seed: int) -> None:
    chance = random.Random(seed)
    found, model = IntervalSet([Interval(3, 9), Interval(12, 30)]), {*range(3, 9), *range(12, 30)}
    for _ in range(200):
        start = chance.randrange(40)
        end = start + chance.randrange(8)
        if chance.random() < 0.6:
            found.remove(start, end)
            model -= {*range(start, end)}
        elif model.isdisjoint(range(start, end)):
            found.add(start, end)
            model |= {*range(start, end)}
        assert _positions(found) == model
        assert found.size == len(model)
        inside = found.within(start, end)
        assert {p for one in inside for p in range(*one)} == model & {*range(start, end)}
        assert list(found) == sorted(found)


def test_it_covers_only_what_lies_in_one_interval() -> None:
    found = IntervalSet([Interval(0, 10)])
    assert found.covers(2, 10)
    found.remove(4, 5)
    assert not found.covers(2, 10)
    assert found.covers(5, 10)
    assert not found.covers(9, 11)


def test_the_first_interval_is_taken() -> None:
    found = IntervalSet([Interval(5, 6), Interval(0, 2)])
    assert found.pop() == Interval(0, 2)
    assert found.size == 1
