"""Rows in random order."""

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import at_most
from tests.readers.helpers import PLACES, ROWS, mini, places


@settings(max_examples=at_most(40))
@given(
    window=st.integers(1, 25),
    seed=st.integers(0, 2**64 - 1),
    size=st.one_of(st.none(), st.integers(1, 20)),
)
def test_a_shuffle_is_a_permutation_that_batches_do_not_change(window, seed, size):
    options = {"random_shuffle": True, "shuffle_buffer_size": window, "seed": seed, "prefetch": 0}
    rows = mini(**options)()

    assert sorted(places(rows)) == PLACES
    assert [ROWS[place] for place in places(rows)] == [tuple(row["values"]) for row in rows]
    assert places(mini(batch_size=size, **options)()) == places(rows)
    assert window > 1 or places(rows) == PLACES


def test_a_large_buffer_shuffles_everything():
    firsts = {places(mini(random_shuffle=True, seed=seed)())[0] for seed in range(300)}

    assert firsts == set(PLACES)


def test_epochs_are_shuffled_differently():
    records = mini(random_shuffle=True, epochs=2, seed=1)()

    assert sorted(places(records[:18])) == sorted(places(records[18:])) == PLACES
    assert records[:18] != records[18:]


def test_a_generated_seed_is_reported_and_repeats_the_order():
    drawn = mini(random_shuffle=True, shuffle_after_epoch=True)
    again = mini(random_shuffle=True, shuffle_after_epoch=True, seed=drawn.seed_in_use)

    assert drawn() == drawn() == again()
    assert set(drawn.stream().and_return().seeds.values()) == {drawn.seed_in_use}
    assert mini(random_shuffle=True).seed_in_use != drawn.seed_in_use


def test_a_state_contains_its_generated_seed():
    first = mini(random_shuffle=True, shuffle_after_epoch=True, epochs=2).stream().and_return()
    head = list(itertools.islice(first, 7))
    saved = json.loads(json.dumps(first.state_dict()))
    second = mini(random_shuffle=True, shuffle_after_epoch=True, epochs=2).stream().and_return()
    second.load_state_dict(saved)

    assert second.seeds == first.seeds == saved["seeds"]
    assert second.given_seeds == {}
    assert places(second) == places(first)
    assert head
