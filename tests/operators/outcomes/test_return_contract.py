"""Tests of dagster_dataops.operators.outcomes.return_contract."""

import datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.errors import UnencodableError
from dagster_dataops.operators.outcomes.dispositions import dropped_for
from dagster_dataops.operators.outcomes.return_contract import ContractError, encode_outcome

GIVEN = {"given": True}
RECORDS = st.dictionaries(st.text(max_size=2), st.integers(-5, 5), max_size=2)


def outcome(returned: object) -> list[dict]:
    return [orjson.loads(line) for line in encode_outcome(returned, GIVEN)[0].splitlines()]


@given(RECORDS)
def test_a_dict_replaces_the_record(record):
    assert outcome(record) == [record]


@given(st.lists(RECORDS))
def test_a_list_replaces_the_record_by_that_many_in_that_order(records):
    assert outcome(records) == records


def test_an_empty_dict_is_a_record():
    assert outcome({}) == [{}]


def test_none_keeps_the_record_as_it_is_now():
    assert outcome(None) == [GIVEN]


def test_an_empty_list_drops_the_record():
    assert encode_outcome([], GIVEN) == (b"", dropped_for(""))


@pytest.mark.parametrize("returned", ["text", 1, True, 1.5, ({},), {1}, b"", iter([]), object()])
def test_other_return_values_are_contract_errors_with_a_remedy(returned):
    kind = type(returned).__name__

    with pytest.raises(ContractError, match=rf"returned a {kind}; return a dict, a list of dicts"):
        encode_outcome(returned, GIVEN)


@pytest.mark.parametrize("intruder", [None, "a", [], [{}], 1])
def test_a_list_with_an_invalid_element_is_a_contract_error_that_names_it(intruder):
    kind = type(intruder).__name__

    with pytest.raises(ContractError, match=f"element 1 is a {kind}, not a dict"):
        encode_outcome([{}, intruder], GIVEN)


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: [{}, r]], ids=["dict", "list"])
def test_a_value_that_json_cannot_hold_is_refused(wrap):
    with pytest.raises(UnencodableError, match="key 'when' holds a date"):
        encode_outcome(wrap({"when": datetime.date(2024, 1, 1)}), GIVEN)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("hide", [lambda x: x, lambda x: [x], lambda x: {"deep": [x]}])
@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: [{}, r]], ids=["dict", "list"])
def test_a_number_that_json_cannot_hold_is_refused_at_any_depth(wrap, hide, number):
    with pytest.raises(UnencodableError, match="score"):
        encode_outcome(wrap({"score": hide(number), "text": "x", "nothing": None}), GIVEN)
