"""Tests of the numbers of elements, from which seeds are derived."""

from dagster_dataops import read_sequence
from dagster_dataops.testing import assert_resumes_anywhere
from tests.streams.sequences import numbers


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
