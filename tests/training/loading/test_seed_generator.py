"""Tests of dagster_dataops.training.loading.seed_generator."""

import pickle

import pytest

from dagster_dataops import SeedGenerator
from dagster_dataops.errors import StreamArgumentError


def shared(generator, count=3):
    return [generator.generate_shared_seed() for _ in range(count)]


def own(generator, count=3):
    return [generator.generate_seed() for _ in range(count)]


def test_seeds_follow_from_the_root_seed():
    assert shared(SeedGenerator(1)) == shared(SeedGenerator(1))
    assert own(SeedGenerator(1)) == own(SeedGenerator(1))
    assert len({*shared(SeedGenerator(1)), *own(SeedGenerator(1)), *shared(SeedGenerator(2))}) == 9
    assert all(0 <= seed < 2**64 for seed in shared(SeedGenerator(0)))


def test_epochs_have_different_seeds():
    assert shared(SeedGenerator(1, "epoch", 0)) != shared(SeedGenerator(1, "epoch", 1))


def test_spawned_generators_share_the_shared_seeds_alone():
    generator = SeedGenerator(5)
    shared(generator, 1)
    workers = [generator.spawn(number) for number in range(3)]
    assert [shared(one) for one in workers] == [shared(generator)] * 3
    seeds = [seed for one in [generator, *workers] for seed in own(one)]
    assert len(set(seeds)) == len(seeds)


def test_a_spawned_generator_does_not_depend_on_the_seeds_drawn_before():
    first, second = SeedGenerator(5), SeedGenerator(5)
    own(first, 10)
    assert own(first.spawn(1)) == own(second.spawn(1))
    assert own(second.spawn(1).spawn(2)) != own(second.spawn(12))


def test_a_generator_can_be_spawned_in_place():
    generator = SeedGenerator(5)
    assert generator.spawn(1, inplace=True) is generator
    assert own(generator) == own(SeedGenerator(5).spawn(1))


def test_a_seed_by_name_does_not_depend_on_others():
    first, second = SeedGenerator(7), SeedGenerator(7)
    shared(first), own(first)
    assert first.generate_shared_seed("crop") == second.generate_shared_seed("crop")
    assert first.generate_seed("crop") == second.generate_seed("crop")
    assert first.generate_seed("crop") != first.generate_seed("flip")
    assert own(first) == [*own(SeedGenerator(7), 6)][3:]


def test_without_a_seed_it_is_random_and_can_be_read():
    generator = SeedGenerator()
    assert shared(SeedGenerator(generator.root)) == shared(generator)
    assert SeedGenerator().root != generator.root


def test_a_generator_survives_pickling():
    generator = SeedGenerator(3).spawn(2)
    own(generator)
    assert own(pickle.loads(pickle.dumps(generator))) == own(generator)


@pytest.mark.parametrize("seed", [-1, 2**64, "1", 1.5])
def test_invalid_seeds_are_refused(seed):
    with pytest.raises(StreamArgumentError, match="from 0 to 2\\^64 - 1"):
        SeedGenerator(seed)
    with pytest.raises(StreamArgumentError, match="worker_id"):
        SeedGenerator(1).spawn(-1)
