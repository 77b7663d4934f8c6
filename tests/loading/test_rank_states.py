"""Tests of dagster_dataops.loading.rank_states."""

import pytest

from dagster_dataops import DataLoader2, merged_states, read_sequence
from dagster_dataops.errors import StreamStateError

STATE = DataLoader2(read_sequence([1, 2])).state_dict()


def test_equal_states_are_the_state_of_each():
    assert merged_states([STATE, dict(STATE)]) == STATE
    assert merged_states([STATE]) is not STATE


def test_no_state_cannot_be_merged():
    with pytest.raises(StreamStateError, match="no states"):
        merged_states([])


def test_the_first_rank_that_differs_is_named_with_what_differs():
    other = {**STATE, "epoch": 1}
    with pytest.raises(StreamStateError, match="the epoch of rank 0 is 0, that of rank 2 is 1"):
        merged_states([STATE, STATE, other, other])
    with pytest.raises(StreamStateError, match="service of rank 0 is null"):
        merged_states([STATE, {**STATE, "service": "x" * 1000}])
