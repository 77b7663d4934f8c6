import pytest

from dagster_dataops import data
from dagster_dataops.errors import DefinitionError, MissingColumnError


def test_columns_are_renamed_in_place() -> None:
    record = {"a": 1, "b": 2, "c": 3}
    renamed = data.shape.Rename({"a": "b", "b": "a", "x": "y"}).forward(record)
    assert list(renamed.items()) == [("b", 1), ("a", 2), ("c", 3)]
    with pytest.raises(MissingColumnError, match="'x'"):
        data.shape.Rename({"x": "y"}, missing="error").forward(record)
    with pytest.raises(ValueError, match=r"already has \['c'\]"):
        data.shape.Rename({"a": "c"}).forward(record)
    assert data.shape.Rename({"a": "c"}, overwrite=True).forward(record) == {"c": 1, "b": 2}
    kept = data.shape.Rename({"a": "x"}, keep_original=True)
    assert kept.forward({"a": [1]}) == {"a": [1], "x": [1]}
    with pytest.raises(ValueError, match="already has"):
        kept.forward({"a": 1, "x": 2})
    with pytest.raises(DefinitionError, match="same name"):
        data.shape.Rename({"a": "c", "b": "c"})
    with pytest.raises(DefinitionError, match="missing"):
        data.shape.Rename({"a": "c"}, missing="drop")


def test_columns_are_selected_in_order() -> None:
    record = {"a": 1, "b": 2, "c": 3}
    assert list(data.shape.Select(["c", "a", "x"]).forward(record)) == ["c", "a"]
    assert data.shape.Select("b").forward(record) == {"b": 2}
    with pytest.raises(MissingColumnError):
        data.shape.Select(["x"], missing="error").forward(record)
    with pytest.raises(DefinitionError, match="at least one column"):
        data.shape.Select([])


def test_columns_are_dropped() -> None:
    assert data.shape.Drop(["a", "x"])([{"a": 1, "b": 2}, {"x": 1}]) == [{"b": 2}, {}]


def test_missing_values_are_filled() -> None:
    values = {"a": [1], "b": 2}
    operator = data.shape.Fill(values)
    assert operator.forward({"b": None}) == {"b": 2, "a": [1]}
    assert operator.forward({"a": "", "b": 0}) == {"a": "", "b": 0}
    assert data.shape.Fill(values, empty=True).forward({"a": "", "b": 0}) == {"a": [1], "b": 0}
    operator.forward({})["a"].append(2)
    assert operator.forward({})["a"] == [1]


def test_constants_are_added() -> None:
    operator = data.shape.Add({"a": {"b": 1}})
    assert operator([{"a": 2, "c": 3}]) == [{"a": {"b": 1}, "c": 3}]
