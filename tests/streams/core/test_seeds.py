"""Tests of dagster_dataops.streams.core.seeds."""

from itertools import islice

from dagster_dataops.streams.core.seeds import RandomNumbers, derive_seed, seeded_random


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
