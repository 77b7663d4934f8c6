"""Selectors that are compiled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import Selector
from dagster_dataops.errors import MissingColumnError
from tests.fuzzing import selectors


@pytest.mark.parametrize("text", ["[*]" * 500, ",".join(["a"] * 2000), "a." * 500 + "a"])
def test_huge_selectors_are_evaluated_as_well(text):
    with pytest.raises(MissingColumnError):
        Selector(text).get({"b": 1})


_KEYS = st.sampled_from(["a", "b", "0", "*"])


_ITEMS = st.recursive(
    st.integers(0, 9) | st.text(max_size=2) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(_KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)


_STEPS = _KEYS.map(lambda key: f".{key}") | st.sampled_from(["[0]", "[1]", "[*]"])


_PATHS = st.lists(_STEPS, min_size=1, max_size=4).map(lambda s: "".join(s).removeprefix("."))


_TEXTS = st.lists(_PATHS, min_size=1, max_size=3).map(",".join) | st.text("a.[]*0, ", max_size=9)


@given(_TEXTS, _ITEMS)
def test_compiled_selectors_agree_with_plain_evaluation(text, item):
    selectors.check_selector(text, item)
