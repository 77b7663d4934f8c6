"""Random numbers by name, and permutations that are computed place by place."""

from collections import Counter
from itertools import islice, pairwise, product
from random import Random

import pytest

from dagster_dataops import read_sequence
from dagster_dataops.streams.core.seeds import RandomNumbers, derive_seed, seeded_random
from dagster_dataops.streams.stages.random_order import Permutation
from dagster_dataops.testing import assert_resumes_anywhere
from tests.streams.sequences import numbers


def test_seeds_belong_to_their_names():
    assert derive_seed(1, "a", 2) == derive_seed(1, "a", 2)
    others = {
        derive_seed(1, "a"),
        derive_seed(2, "a"),
        derive_seed(1, "b"),
        derive_seed(1, "a", "b"),
    }
    assert len(others | {derive_seed(1, "ab"), derive_seed(1, 1), derive_seed(1, "1")}) == 7
    assert seeded_random(1, "a").random() == seeded_random(1, "a").random()


def test_seeds_are_the_same_in_every_version():
    assert derive_seed(0, "read_sequence>shuffle") == 15033125318388002710


def test_random_draws_can_be_resumed_at_any_index():
    whole = list(islice(RandomNumbers(7), 3000))

    assert all(0 <= one < 1 for one in whole)
    assert 0.45 < sum(whole) / len(whole) < 0.55
    for start in (0, 1, 1023, 1024, 1025, 2048):
        draws = RandomNumbers(7, start)
        assert draws.number == start
        assert list(islice(draws, 100)) == whole[start : start + 100]
        assert draws.number == start + 100


def order_of(size, seed=1):
    return Permutation(size, Random(seed)).values_at(range(size))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 65_536, 65_537, 70_001, 90_000])
def test_every_number_comes_once(size):
    assert sorted(order_of(size)) == list(range(size))


@pytest.mark.parametrize("size", [1_000, 70_001])
def test_a_stretch_is_a_part_of_the_whole(size):
    permutation, whole = Permutation(size, Random(1)), order_of(size)

    assert permutation.values_at(range(size - 7, size)) == whole[-7:]
    assert permutation.values_at(range(3, size, 100)) == whole[3::100]


def test_few_numbers_come_in_the_order_of_a_shuffled_list():
    shuffled = list(range(100))
    Random(5).shuffle(shuffled)

    assert order_of(100, seed=5) == shuffled


def test_large_permutations_show_no_trace_of_the_original_order():
    """Each tenth of the places gets about as many numbers of each tenth."""
    size = 100_000
    order, expected = order_of(size), size / 100
    counts = Counter((place * 10 // size, one * 10 // size) for place, one in enumerate(order))
    cells = product(range(10), repeat=2)
    squares = sum((counts[cell] - expected) ** 2 / expected for cell in cells)
    neighbours = [b - a for a, b in pairwise(order)]

    assert squares < 140  # 81 degrees of freedom: one seed in ten thousand is above
    assert sum(abs(step) < 100 for step in neighbours) < 300  # 200 by chance
    assert 48_500 < sum(step > 0 for step in neighbours) < 51_500


def test_other_seeds_give_other_orders():
    assert sum(a == b for a, b in zip(order_of(70_000), order_of(70_000, 2), strict=True)) < 12


def test_a_large_permutation_takes_little_memory_and_time():
    permutation = Permutation(10**9, Random(1))

    assert len(set(permutation.values_at(range(10**9 - 1000, 10**9)))) == 1000
    assert sum(len(table) for tables in permutation._tables for table in tables) < 200_000


def drawn(item, random):
    return (item, random.getrandbits(32))


def test_filters_do_not_shift_the_numbers():
    every = dict(numbers(*range(20)).map(drawn, random=True))
    # The path of the stage is part of the seed, so the filter must be in both.
    few = dict(numbers(*range(20)).filter(lambda n: n % 3 == 0).map(drawn, random=True))
    all_kept = dict(numbers(*range(20)).filter(lambda n: True).map(drawn, random=True))
    assert few == {n: one for n, one in all_kept.items() if n % 3 == 0}
    assert every.keys() == all_kept.keys()


def test_items_of_one_element_have_numbers_of_their_own():
    def copies(item):
        return read_sequence([item] * 3)

    def made():
        return numbers(1, 2).yield_from(copies).map(drawn, random=True)

    values = [value for _, value in made()]
    assert len(set(values)) == 6
    assert_resumes_anywhere(made)


def test_each_epoch_has_other_numbers_unless_it_is_reset():
    stream = numbers(1, 2).map(drawn, random=True)
    values = [value for _, value in stream.repeat(2)]
    assert len(set(values)) == 4
    same = list(stream.repeat(2, reset_rng=True))
    assert same[:2] == same[2:]
