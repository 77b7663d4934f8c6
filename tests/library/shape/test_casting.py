import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)
KINDS = ("int", "float", "str", "bool", "list", "json", "parsed")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("int", " -12 ", -12),
        ("int", 3.0, 3),
        ("int", True, 1),
        ("float", "1e3", 1000.0),
        ("float", 2**60, 2.0**60),
        ("str", 1.5, "1.5"),
        ("str", True, "true"),
        ("bool", " Yes", True),
        ("bool", 0, False),
        ("list", "a", ["a"]),
        ("list", ["a"], ["a"]),
        ("json", {"é": [1]}, '{"é":[1]}'),
        ("parsed", '{"a": [1]}', {"a": [1]}),
        ("parsed", [1], [1]),
    ],
)
def test_values_are_cast(kind: str, value, expected) -> None:
    found = data.shape.Cast({"a": kind}).forward({"a": value})["a"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "1.5"),
        ("int", 1.5),
        ("int", "1_000"),
        ("int", "٣"),
        ("int", str(2**64)),
        ("int", [1]),
        ("float", 2**53 + 1),
        ("float", "nan"),
        ("float", "1_0"),
        ("float", 10**400),
        ("str", [1]),
        ("bool", "maybe"),
        ("bool", 2),
        ("parsed", "NaN"),
        ("parsed", "{"),
        ("parsed", "[1e400]"),
        ("parsed", f"[{2**64}]"),
        ("parsed", "[" * 100_000),
    ],
)
def test_a_loss_is_an_error(kind: str, value) -> None:
    with pytest.raises(ValueError, match="without loss"):
        data.shape.Cast({"a": kind}).forward({"a": value})
    assert data.shape.Cast({"a": kind}, on_error="null").forward({"a": value}) == {"a": None}


@given(JSON, st.sampled_from(KINDS))
def test_nothing_else_is_raised(value, kind: str) -> None:
    found = data.shape.Cast({"a": kind}, on_error="null").forward({"a": value})["a"]
    if value is not None and kind in {"int", "float"} and found is not None:
        assert float(found) == float(value)


def test_missing_values_stay_and_selectors_work() -> None:
    operator = data.shape.Cast({"a": "int", "b.c": "str", "d[*]": "float"})
    assert operator([{"a": None, "d": ["1", 2]}, {"b": {"c": 1}}]) == [
        {"a": None, "d": [1.0, 2.0]},
        {"b": {"c": "1"}},
    ]
    with pytest.raises(DefinitionError, match="use one of"):
        data.shape.Cast({"a": "date"})
    with pytest.raises(DefinitionError, match="on_error"):
        data.shape.Cast({"a": "int"}, on_error="drop")
