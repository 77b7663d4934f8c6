import random

from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.execution.workers.output_placement import Placing
from dagster_dataops.execution.workers.protocol import Place


def test_the_first_stretch_belongs_at_the_start() -> None:
    assert list(Placing(3).add(3, 10, 5)) == [Place(3, 0)]


def test_the_place_of_what_comes_next_is_known_before_it_is_done() -> None:
    placing = Placing(3)
    assert placing.place_of(3) == 0
    assert placing.place_of(10) is None
    assert list(placing.add(3, 10, 5))
    assert placing.place_of(10) == 5
    assert placing.place_of(3) is None


def test_a_place_is_known_once_everything_before_it_is() -> None:
    placing = Placing(0)
    assert list(placing.add(20, 30, 7)) == []
    assert list(placing.add(10, 20, 5)) == []
    assert list(placing.add(0, 10, 3)) == [Place(0, 0), Place(10, 3), Place(20, 8)]


def test_stretches_that_became_nothing_take_no_room() -> None:
    placing = Placing(0)
    assert list(placing.add(0, 10, 0)) == [Place(0, 0)]
    assert list(placing.add(10, 20, 4)) == [Place(10, 0)]


def test_what_was_placed_before_is_placed_once_whatever_its_size_is_now() -> None:
    placing = Placing(0)
    assert list(placing.add(0, 10, 3)) == [Place(0, 0)]
    assert placing.knows(0)
    assert list(placing.add(0, 10, 8)) == []
    assert list(placing.add(10, 20, 1)) == [Place(10, 3)]


def test_a_range_that_is_done_again_in_parts_counts_as_its_parts() -> None:
    placing = Placing(0)
    assert list(placing.add(10, 30, 9)) == []
    assert list(placing.add(10, 20, 4)) == []
    assert list(placing.add(20, 30, 6)) == []
    expected = [Place(0, 0), Place(10, 1), Place(20, 5)]
    assert list(placing.add(0, 10, 1)) == expected
    assert list(placing.add(30, 40, 1)) == [Place(30, 11)]


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), max_size=40), st.integers())
def test_places_are_sums_of_sizes_in_whatever_order_they_come(
    stretches: list[tuple[int, int]], seed: int
) -> None:
    wanted, known, start, offset = [], [], 7, 0
    for length, size in stretches:
        known.append((start, start + length, size))
        wanted.append(Place(start, offset))
        start, offset = start + length, offset + size
    random.Random(seed).shuffle(known)
    placing = Placing(7)
    found = [place for stretch in known for place in placing.add(*stretch)]
    assert found == wanted
