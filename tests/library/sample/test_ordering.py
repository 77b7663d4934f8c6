from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DatasetOperatorError, DefinitionError
from tests.examples import at_most

VALUES = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([1.5, float("nan"), 1 << 60]))


def sort(operator: Any, rows: list[Any], max_bytes: int) -> list[Any]:
    operator._max_bytes = max_bytes
    return list(operator.forward_batch_input(rows))


def missing(value: Any) -> bool:
    return value is None or value != value


@given(
    values=st.lists(VALUES, max_size=30),
    reverse=st.booleans(),
    max_bytes=st.sampled_from([1, 500, 1 << 20]),
)
@settings(max_examples=at_most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_are_sorted_and_ties_stay_in_order(
    values: list[Any], reverse: bool, max_bytes: int
) -> None:
    rows = [{"n": n, "v": None if missing(value) else value} for n, value in enumerate(values)]
    present = [row for row in rows if row["v"] is not None]
    expected = sorted(present, key=lambda row: -row["v"] if reverse else row["v"])
    expected += [row for row in rows if row["v"] is None]
    assert sort(data.sample.Sort("v", reverse=reverse), rows, max_bytes) == expected


@pytest.mark.parametrize("reverse", [False, True])
def test_many_sorted_runs_are_merged_in_turn(reverse: bool) -> None:
    rows = [{"n": n, "v": n * n % 17, "w": str(n % 3)} for n in range(400)]
    expected = sorted(rows, key=lambda row: (row["v"], row["w"]), reverse=reverse)
    assert sort(data.sample.Sort(["v", "w"], reverse=reverse), rows, 1) == expected


def test_several_keys_and_texts_are_sorted(root: Path) -> None:
    rows = [{"a": a, "b": b} for a in ("x", "y", None) for b in (2, 1)]
    assert data.sample.Sort(["b", "a"])(rows[::-1]) == [
        {"a": a, "b": b} for b in (1, 2) for a in ("x", "y", None)
    ]
    assert data.sample.Sort("a", reverse=True)(rows)[:2] == rows[2:4]


@pytest.mark.parametrize("max_bytes", [1, 500, 1 << 20])
def test_groups_are_in_the_order_of_their_first_record(max_bytes: int) -> None:
    rows = [{"n": n, "g": [3, "a", None, {"x": 1}][n * n % 4], "h": n % 2} for n in range(60)]
    groups: dict[str, Any] = {}
    for row in rows:
        group = groups.setdefault(repr(row["g"]), {"g": row["g"], "records": []})
        group["records"].append(row)
    assert sort(data.sample.GroupBy("g"), rows, max_bytes) == list(groups.values())
    most = sort(data.sample.GroupBy(["g", "h"], "rows", max_per_group=2), rows, max_bytes)
    assert [len(one["rows"]) for one in most] == [2] * len(most)
    assert sort(data.sample.GroupBy("z"), rows[:2], max_bytes) == [{"z": None, "records": rows[:2]}]


def test_values_without_an_order_are_refused(root: Path) -> None:
    with pytest.raises(DatasetOperatorError, match="'v' has a list.*sort by numbers or texts"):
        data.sample.Sort("v")([{"v": [1]}])
    with pytest.raises(DefinitionError, match="'max_per_group' must be at least 1"):
        data.sample.GroupBy("v", max_per_group=0)
