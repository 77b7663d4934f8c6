"""Tests of the column schema: types and shares, from all records or from a marked sample."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.assets.metadata.columns.column_schema import (
    _parts,
    schema_of,
    type_of,
    union,
    with_texts,
)
from dagster_dataops.datasets.writer import write_records

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
)


def described(folder: Path, *records: Any) -> dict[str, tuple[str, str, bool]]:
    """Type, constraints as text and whether it may be empty, by column."""
    schema = schema_of(write_records(folder / "r.jsonl", records, "test")).table_schema()
    return {
        column.name: (
            column.type,
            ", ".join(column.constraints.other),
            column.constraints.nullable,
        )
        for column in schema.columns
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.5, "number"),
        ("a", "string"),
        ({"a": 1}, "object"),
        ([], "array"),
        (["a", None], "array<string | null>"),
        ([1, 2.5], "array<number>"),
        ([[1], ["a"]], "array<array<integer | string>>"),
    ],
)
def test_a_value_has_its_json_type(value: Any, expected: str) -> None:
    assert type_of(value) == expected


def test_types_are_joined_to_the_most_general_null_last() -> None:
    assert union(["null", "string", "integer", "number"]) == "number | string | null"
    assert union(["array", "array<string>", "array<integer | null>"]) == (
        "array<integer | string | null>"
    )


@given(st.lists(JSON, min_size=1, max_size=8))
def test_the_type_of_many_values_has_room_for_each(values: list[Any]) -> None:
    types = [type_of(value) for value in values]
    joined = union(types)
    assert joined
    assert all(union([one, *_parts(joined)]) == joined for one in types)
    assert joined.count("<") == joined.count(">")


def test_columns_show_their_shares_of_missing_and_null_values(tmp_path: Path) -> None:
    rows = [{"id": n, "text": "a" if n else None} | ({"few": 1} if n < 2 else {}) for n in range(8)]
    assert described(tmp_path, *rows) == {
        "id": ("integer", "", False),
        "text": ("string | null", "12.5 % null", True),
        "few": ("integer", "in 25.0 % of records", True),
    }


def test_a_share_is_never_rounded_to_0_or_100_percent(tmp_path: Path) -> None:
    rows = [{"all": 1} | ({"one": 1} if n == 3 else {"most": 1}) for n in range(250)]
    found = described(tmp_path, *rows)
    assert found["one"][1] == "in 0.4 % of records"
    assert found["most"][1] == "in 99.6 % of records"


def test_objects_show_their_keys(tmp_path: Path) -> None:
    rows = [{"meta": {"lang": "en"}}, {"meta": {"lang": "de", "score": 1}}]
    schema = schema_of(write_records(tmp_path / "r.jsonl", rows, "test")).table_schema()
    assert schema.columns[0].description == "Keys: lang, score."
    (column,) = with_texts(schema, {"meta": "What is known.", "other": "No."}).columns
    assert column.description == "What is known. Keys: lang, score."
    assert column == with_texts(schema, {"meta": "What is known."}).columns[0]


def test_a_sample_is_marked_as_a_sample(tmp_path: Path) -> None:
    rows = ({"id": n} for n in range(5000))
    dataset = write_records(tmp_path / "r.jsonl", rows, "test")
    schema = schema_of(dataset).table_schema()
    assert schema.constraints.other == ["250 of 5,000 sampled"]
    assert schema.columns[0].constraints.nullable


@pytest.mark.parametrize(("records", "text"), [(1, "1 record"), (2, "all 2 records")])
def test_a_complete_sample_is_reported_as_complete(tmp_path: Path, records: int, text: str) -> None:
    rows = [{"id": number} for number in range(records)]
    dataset = write_records(tmp_path / "r.jsonl", rows, "test")
    assert schema_of(dataset).table_schema().constraints.other == [text]


def test_records_whose_keys_are_data_do_not_flood_the_schema(tmp_path: Path) -> None:
    rows = [{f"user {n}": 1} for n in range(250)]
    schema = schema_of(write_records(tmp_path / "r.jsonl", rows, "test")).table_schema()
    assert len(schema.columns) == 200
    assert schema.constraints.other[1] == "50 more columns"


def test_an_empty_result_has_no_columns(tmp_path: Path) -> None:
    assert described(tmp_path) == {}


def test_names_of_columns_may_be_anything_json_can_hold(tmp_path: Path) -> None:
    names = ["", " ", "a.b", "a[0]", "<b>", "\u2028", "é" * 300]
    found = described(tmp_path, orjson.loads(orjson.dumps(dict.fromkeys(names, 1))))
    assert list(found) == names
