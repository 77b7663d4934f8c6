"""What is noted of a call gives, for another record, the bytes that a call would give."""

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.library.columns_read import INPUT_KEY
from dagster_dataops.operators.outcomes.change_watch import ChangeWatch, ReadTerms
from dagster_dataops.operators.outcomes.record_change import RecordChange
from dagster_dataops.operators.outcomes.return_contract import encode_outcome
from dagster_dataops.operators.pickling import receive, ship
from dagster_dataops.operators.read_terms import terms_of
from dagster_dataops.records import Record
from tests.examples import at_most
from tests.registries import OperatorRegistry

Call = Callable[[Any], Any]
_NAMES = ("a", "bb", "text", "id", "meta")
_TERMS = {
    "observed": lambda reads: ReadTerms(shielded=True),
    "library": lambda reads: ReadTerms(),
    "declared": lambda reads: ReadTerms(frozenset(reads), trusted=True),
    "adding": lambda reads: ReadTerms(frozenset(reads), trusted=True, adds=True),
}


def noted(call: Call, record: Record, terms: ReadTerms) -> tuple[bytes, RecordChange | None]:
    """Return the result lines of a watched call, and what was noted."""
    watch = ChangeWatch(terms)
    line = orjson.dumps(record)
    before = orjson.loads(line)
    returned = watch.around(call)(before)
    output, _ = encode_outcome(returned, before)
    return output, RecordChange.of_counts(watch.take())


def anew(call: Call, record: Record) -> bytes:
    """Return the result lines of a plain call."""
    own = orjson.loads(orjson.dumps(record))
    return encode_outcome(call(own), own)[0]


def check(call: Call, record: Record, other: Record, terms: ReadTerms) -> bool:
    """Check the outcome for another record; return whether it was found."""
    output, change = noted(call, record, terms)
    assert output == anew(call, record)
    if change is None or change.rule.digest(record) != change.rule.digest(other):
        return False
    assert change.apply(other, output) == anew(call, other), (record, other, change)
    return True


# ---- random operators: a list of steps on a working copy, and the way in which it is returned

_STEPS = st.one_of(
    st.tuples(st.just("set"), st.sampled_from([*_NAMES, "new"]), st.sampled_from(_NAMES)),
    st.tuples(
        st.just("constant"),
        st.sampled_from([*_NAMES, "new"]),
        st.sampled_from([1, True, "w", "long", [2]]),
    ),
    st.tuples(st.just("pop"), st.sampled_from(_NAMES)),
    st.tuples(st.just("move"), st.sampled_from(_NAMES)),
    st.tuples(st.just("flag"), st.sampled_from(_NAMES), st.sampled_from([*_NAMES, "new"])),
    st.tuples(st.just("append"), st.just("meta")),
    st.tuples(st.just("default"), st.sampled_from(_NAMES)),
)
_COPIES = ("in place", "none", "or", "copy", "display", "dict", "items", "first", "fresh", "deep")


def program(how: str, steps: list[tuple[Any, ...]], ending: str) -> Call:
    """Return an operator that copies its record in a way, takes steps, and returns it in a way."""

    def call(record: Any) -> Any:
        made: Any = {
            "in place": lambda: record,
            "none": lambda: record,
            "or": lambda: record | {},
            "copy": record.copy,
            "display": lambda: {**record},
            "dict": lambda: dict(record),
            "items": lambda: dict(list(record.items())),
            "first": lambda: {"head": 1, **record},
            "fresh": lambda: {"text": record.get("text")},
            "deep": lambda: copy.deepcopy(record),
        }[how]()
        for step in steps:
            take_step(made, record, step)
        if how == "none" and ending == "one":
            return None
        return {
            "one": made,
            "list": [made, made | {"again": 1}],
            "drop": [],
            "nested": {"in": made},
        }[ending]

    return call


def take_step(made: Any, record: Any, step: tuple[Any, ...]) -> None:
    kind, name, *more = step
    if kind == "set":
        made[name] = [record.get(more[0])]
    elif kind == "constant":
        made[name] = copy.deepcopy(more[0])
    elif kind == "pop":
        made.pop(name, None)
    elif kind == "move" and name in made:
        made[name] = made.pop(name)
    elif kind == "flag" and name in record and record[name]:
        made[more[0]] = True
    elif kind == "append" and isinstance(record.get(name), list):
        record[name].append(7)
    elif kind == "default":
        made.setdefault(name, "usual")


def reads_of(how: str, steps: list[tuple[Any, ...]]) -> set[str]:
    """Return the columns that a program names, which a right declaration has."""
    reads = {"text"} if how == "fresh" else set()
    for kind, name, *more in steps:
        if kind in {"pop", "move", "flag", "append", "default"}:
            reads.add(name)
        if kind == "set":
            reads.add(more[0])
    return reads


_VALUES = st.sampled_from(
    [None, True, False, 1, 0, 300, 1.0, 1.5, "", "w", "long", "other", [], [2], {"k": 1}]
)
_RECORDS = st.dictionaries(
    st.sampled_from([*_NAMES, "new", "head", "x", "further"]), _VALUES, max_size=7
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Record, Record]:
    """Return a record and another one, mostly with some columns alike."""
    record = draw(_RECORDS)
    other = {name: value for name, value in record.items() if draw(st.integers(0, 4))}
    if draw(st.booleans()):
        other |= draw(_RECORDS)
    order = draw(st.permutations(list(other))) if draw(st.booleans()) else list(other)
    return record, {name: other[name] for name in order}


@pytest.mark.parametrize("terms", _TERMS)
@settings(max_examples=at_most(400))
@given(
    how=st.sampled_from(_COPIES),
    steps=st.lists(_STEPS, max_size=4),
    ending=st.sampled_from(["one", "one", "one", "list", "drop", "nested"]),
    records=pairs(),
)
def test_a_random_operator_on_another_record(
    terms: str, how: str, steps: list[tuple[Any, ...]], ending: str, records: tuple[Record, Record]
) -> None:
    if terms == "adding" and (how == "fresh" or ending != "one"):
        return  # it does not add to the others
    if terms == "declared" and ending == "nested" and how not in {"in place", "none"}:
        return  # it reads all columns, whatever it declares
    call = program(how, steps, ending)
    check(call, *records, _TERMS[terms](reads_of(how, steps)))


def test_a_worker_knows_the_same_of_the_columns(registry: OperatorRegistry) -> None:
    @registry("data.sent", reads="observed", _reuse_outcomes=True)
    def observed(record):
        return record

    @registry("data.sent", reads={"text": str}, writes=["size"], _reuse_outcomes=True)
    def declared(record):
        return record

    @registry("data.sent", reads=[], _reuse_outcomes=True)
    def constant(record):
        return record

    @registry("data.sent", reads=INPUT_KEY, _reuse_outcomes=True)  # as one that inherits
    def longer(record, input_key="text"):
        return record

    operators = [observed(), declared(), constant(), longer(), data.text.Normalize()]
    expected = [terms_of(one.__dataops__) for one in operators]
    assert [terms_of(receive(ship(one)).__dataops__) for one in operators] == expected
    assert expected == [
        ReadTerms(shielded=True),
        ReadTerms(frozenset({"text"}), trusted=True, adds=True),
        ReadTerms(trusted=True),
        None,
        ReadTerms(frozenset({"text"})),
    ]


def test_a_column_that_is_set_and_removed_counts() -> None:
    call = program("in place", [("constant", "new", 1), ("pop", "new")], "one")
    for terms in _TERMS.values():
        assert not check(call, {"id": 1}, {"id": 1, "new": 2}, terms(set()))
        assert check(call, {"id": 1}, {"id": 1, "further": 2}, terms(set()))
