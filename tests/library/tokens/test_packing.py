import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, UnfitRecordError

LISTS = st.lists(st.lists(st.integers(1, 9), max_size=7), max_size=9)


@given(LISTS, st.integers(1, 5), st.sampled_from([None, 0]))
def test_no_token_is_lost_or_moved(lists, most: int, end: int | None) -> None:
    operator = data.tokens.Pack(most, end_id=end)
    found = [
        one["token_ids"] for one in operator.forward_window([{"token_ids": ids} for ids in lists])
    ]
    expected = [one for ids in lists for one in [*ids, *([] if end is None else [end])]]
    assert [one for ids in found for one in ids] == expected
    assert all(len(ids) == most for ids in found[:-1])
    assert all(found)


def test_the_last_sequence_is_filled_or_left_out() -> None:
    records = [{"a": [1, 2]}, {"a": None}, {}, {"a": [3]}]
    assert data.tokens.Pack(2, "a", "b", _batch_size=10)(records) == [{"b": [1, 2]}, {"b": [3]}]
    assert data.tokens.Pack(2, "a", "b", pad_id=0).forward_window(records)[1] == {"b": [3, 0]}
    assert data.tokens.Pack(2, "a", "b", drop_last=True).forward_window(records) == [{"b": [1, 2]}]
    assert data.tokens.Pack(3, "a", pad_id=0).forward_window(records) == [{"token_ids": [1, 2, 3]}]


def test_options_and_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DefinitionError, match="one of them"):
        data.tokens.Pack(pad_id=0, drop_last=True)
    with pytest.raises(DefinitionError, match="at least 1"):
        data.tokens.Pack(0)
    for value in ("text", [1.5], [True], {"a": 1}):
        with pytest.raises(UnfitRecordError, match=r"tokens\.Encode"):
            data.tokens.Pack().forward_window([{"token_ids": value}])
