"""Tests of dagster_dataops.streams.core.seeds."""

from itertools import islice

from dagster_dataops.streams.core.seeds import Draws, derived, generator


def test_seeds_belong_to_their_names():
    assert derived(1, "a", 2) == derived(1, "a", 2)
    others = {derived(1, "a"), derived(2, "a"), derived(1, "b"), derived(1, "a", "b")}
    assert len(others | {derived(1, "ab"), derived(1, 1), derived(1, "1")}) == 7
    assert generator(1, "a").random() == generator(1, "a").random()


def test_seeds_stay_what_they_are_from_version_to_version():
    assert derived(0, "read_sequence>shuffle") == 15033125318388002710


def test_draws_can_be_taken_up_anywhere():
    whole = list(islice(Draws(7), 3000))

    assert all(0 <= one < 1 for one in whole)
    assert 0.45 < sum(whole) / len(whole) < 0.55
    for start in (0, 1, 1023, 1024, 1025, 2048):
        draws = Draws(7, start)
        assert draws.number == start
        assert list(islice(draws, 100)) == whole[start : start + 100]
        assert draws.number == start + 100
