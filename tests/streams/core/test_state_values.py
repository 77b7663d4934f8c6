"""Tests of dagster_dataops.streams.core.state_values."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import StreamStateError
from dagster_dataops.streams.core.state_values import from_json, to_json

_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=5)
)
_KEYS = st.text(max_size=3) | st.sampled_from(["~tuple", "~dict", "~"]) | st.integers()
_ITEMS = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(_KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(_ITEMS)
def test_items_come_back_as_they_were(item):
    assert repr(from_json(json.loads(json.dumps(to_json(item), allow_nan=False)))) == repr(item)


@pytest.mark.parametrize("item", [{1}, object(), [1, (2, {"a": 1j})]])
def test_what_json_cannot_hold_is_refused(item):
    with pytest.raises(StreamStateError, match="which JSON cannot"):
        to_json(item)


@pytest.mark.parametrize(
    "damaged", [{"~none": 1}, {"~tuple": 1}, {"~bytes": "?"}, {"~dict": [1]}, {"~float": "x"}]
)
def test_damaged_items_are_refused(damaged):
    with pytest.raises(StreamStateError, match="damaged|unknown kind"):
        from_json(damaged)
