from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import data, pipeline
from dagster_dataops.errors import DatasetOperatorError, DefinitionError
from tests.examples import at_most

ROWS = st.lists(st.sampled_from([None, 0, 1, 2, "a", 1.5]), max_size=8)


def brute_force(left: Any, right: Any, how: str, duplicates: str) -> Any:
    made = []
    matched = []
    for row in left:
        found = [one for one in right if row["k"] is not None and one["k"] == row["k"]]
        matched += found
        if how in {"semi", "anti"}:
            made += [row] * (bool(found) == (how == "semi"))
            continue
        found = {"first": found[:1], "last": found[-1:], "all": found}[duplicates]
        made += [{**row, "r": one["r"]} for one in found]
        made += [row] * (not found and how != "inner")
    if how == "outer":
        made += [one for one in right if one not in matched]
    return made


@given(
    left=ROWS,
    right=ROWS,
    how=st.sampled_from(["left", "inner", "semi", "anti", "outer"]),
    duplicates=st.sampled_from(["first", "last", "all"]),
    max_bytes=st.sampled_from([0, 500, 1 << 20]),
)
@settings(max_examples=at_most(150))
def test_records_with_equal_keys_are_joined(
    left: Any, right: Any, how: str, duplicates: str, max_bytes: int
) -> None:
    first = [{"k": key, "l": n} for n, key in enumerate(left)]
    second = [{"k": key, "r": n} for n, key in enumerate(right)]
    operator = data.join.Merge("k", how=how, duplicates=duplicates)
    operator._max_bytes = max_bytes
    found = list(operator.forward_batch_input(first, second))
    expected = brute_force(first, second, how, duplicates)
    assert found == expected


def test_columns_are_chosen_and_renamed() -> None:
    left = [{"id": 1, "name": "x"}, {"id": 2}]
    right = [{"key": 1, "name": "y", "more": 3}]
    merge = data.join.Merge("id", right_on="key")
    assert list(merge.forward_batch_input(left, right)) == [
        {"id": 1, "name": "x", "name_right": "y", "more": 3},
        {"id": 2},
    ]
    some = data.join.Merge("id", right_on="key", columns=["name"], suffix="2")
    assert list(some.forward_batch_input(left, right)) == [
        {"id": 1, "name": "x", "name2": "y"},
        {"id": 2, "name": None},
    ]


def test_several_keys_and_paths_are_compared() -> None:
    left = [{"a": {"b": 1}, "c": [2]}, {"a": {"b": 1}, "c": None}, {"c": [2]}]
    right = [{"a": {"b": 1}, "c": [2], "d": 3}]
    found = list(data.join.Merge(["a.b", "c"], columns=["d"]).forward_batch_input(left, right))
    assert [row["d"] for row in found] == [3, None, None]


def test_it_joins_nodes_of_a_pipeline(root: Path) -> None:
    def doubled(record: dict) -> dict:
        return {"n": record["n"], "double": 2 * record["n"]}

    with pipeline("docs") as ppl:
        ppl.double = doubled
        ppl.add("joined", data.join.Merge("n"), inputs=[ppl.source, ppl.double])
    assert ppl([{"n": 1}, {"n": 2}]) == [{"n": 1, "double": 2}, {"n": 2, "double": 4}]
    with pipeline("twice") as twice:
        twice.double = doubled
        twice.add("joined", data.join.Merge("n"), inputs=[twice.source, twice.double])
    with pytest.raises(DatasetOperatorError, match=r"2 records .* have the key \[1\]; choose one"):
        twice([{"n": 1}, {"n": 1}])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"how": "right"}, "how is 'right'; use one of 'left', 'inner'"),
        ({"duplicates": "x"}, "duplicates is 'x'; use one of 'error', 'first'"),
        ({"right_on": ["a", "b"]}, "give as many columns"),
        ({"max_memory_mb": 0}, "max_memory_mb"),
    ],
)
def test_wrong_options_are_refused(option: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        data.join.Merge("k", **option)
