"""Schema, texts, values and lineage of the columns of a result."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import JsonlDataset, chain, data
from dagster_dataops.assets.metadata.columns.column_metadata import column_metadata
from dagster_dataops.assets.metadata.columns.column_schema import (
    _parts,
    schema_of,
    type_of,
    union,
    with_texts,
)
from dagster_dataops.assets.metadata.columns.column_texts import sentence, texts_of
from dagster_dataops.assets.metadata.columns.column_values import (
    INPUT_RECORDS,
    compared_values,
    inputs_to_see,
    values_of,
)
from tests.assets.helpers import dataset_of, registry_of_calls
from tests.assets.metadata.upstream import dataset
from tests.execution.helpers import write_input
from tests.registries import OperatorRegistry

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
)


def described(folder: Path, *records: Any) -> dict[str, tuple[str, str, bool]]:
    """Type, constraints as text and whether it may be empty, by column."""
    schema = schema_of(dataset_of(folder / "r.jsonl", records)).table_schema()
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


FEW = [{"id": n, "text": "a" if n else None} | ({"few": 1} if n < 2 else {}) for n in range(8)]
MOST = [{"one": 1} if n == 3 else {"most": 1} for n in range(250)]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([], {}),
        (
            FEW,
            {
                "id": ("integer", "", False),
                "text": ("string | null", "12.5 % null", True),
                "few": ("integer", "in 25.0 % of records", True),
            },
        ),
        (
            MOST,  # never rounded to 0 or 100 percent
            {
                "most": ("integer", "in 99.6 % of records", True),
                "one": ("integer", "in 0.4 % of records", True),
            },
        ),
    ],
)
def test_columns_show_their_shares_of_missing_and_null_values(
    tmp_path: Path, rows: Any, columns: Any
) -> None:
    assert described(tmp_path, *rows) == columns


def test_objects_show_their_keys(tmp_path: Path) -> None:
    rows = [{"meta": {"lang": "en"}}, {"meta": {"lang": "de", "score": 1}}]
    schema = schema_of(dataset_of(tmp_path / "r.jsonl", rows)).table_schema()
    assert schema.columns[0].description == "Keys: lang, score."
    (column,) = with_texts(schema, {"meta": "What is known.", "other": "No."}).columns
    assert column.description == "What is known. Keys: lang, score."
    assert column == with_texts(schema, {"meta": "What is known."}).columns[0]


@pytest.mark.parametrize(
    ("records", "text"),
    [(1, "1 record"), (2, "all 2 records"), (5000, "250 of 5,000 sampled")],
)
def test_a_sample_is_marked_as_a_sample(tmp_path: Path, records: int, text: str) -> None:
    dataset = dataset_of(tmp_path / "r.jsonl", ({"id": number} for number in range(records)))
    schema = schema_of(dataset).table_schema()
    assert schema.constraints.other == [text]
    assert schema.columns[0].constraints.nullable is (records == 5000)


def test_records_whose_keys_are_data_do_not_flood_the_schema(tmp_path: Path) -> None:
    rows = [{f"user {n}": 1} for n in range(250)]
    schema = schema_of(dataset_of(tmp_path / "r.jsonl", rows)).table_schema()
    assert len(schema.columns) == 200
    assert schema.constraints.other[1] == "50 more columns"


def test_names_of_columns_may_be_anything_json_can_hold(tmp_path: Path) -> None:
    names = ["", " ", "a.b", "a[0]", "<b>", "\u2028", "é" * 300]
    found = described(tmp_path, orjson.loads(orjson.dumps(dict.fromkeys(names, 1))))
    assert list(found) == names


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("Column of the score.", "The score."),
        ("The key of the language.", "The language."),
        ("Key of the text: a column, or a selector.", "The text."),
        ("Key of the text: a column or a selector, or several.", "The text."),
        ("Column of the error in words; ``None`` writes none.", "The error in words."),
        ("Where the masked text is written; by default, ``input_key``.", "The masked text."),
        ("Where the texts are written, as many keys; ``None`` for ``input_key``.", "The texts."),
        ("The key to which the reply is written.", "The reply."),
        (
            "Column that ``tag`` writes: the reason for\nwhich it drops. More.",
            "The reason for which it drops.",
        ),
        ("Language of the page, by ISO 639-1.", "Language of the page, by ISO 639-1."),
        ("Between 0.5 and 1.5; higher is better.", "Between 0.5 and 1.5."),
        ("The reason of ``tag``", "The reason of `tag`."),
        ("Column name, or a selector.", ""),
        ("Column that is hashed, or several.", ""),
        ("Column of the question in the benchmark.", ""),
        ("Name of the column.", ""),
        ("", ""),
    ],
)
def test_a_description_of_an_option_says_what_its_column_is(description: str, text: str) -> None:
    assert sentence(description) == text


def texts(operator: Any) -> dict[str, str]:
    return {one.column: one.text for one in texts_of(operator)}


@pytest.mark.slow
def test_operators_of_the_library_say_what_they_write() -> None:
    assert texts(data.shape.Hash(input_key="text", output_key="digest")) == {"digest": "The hash."}
    assert texts(data.language.Identify(input_key="text")) == {
        "text": "The text.",
        "lang": "The language.",
        "lang_score": "The score.",
    }
    assert texts(data.shape.Hash(input_key="text", output_key="meta.digest")) == {}


def test_the_parts_of_a_chain_say_it_too() -> None:
    operator = chain(
        data.text.Normalize(input_key="body"), data.shape.Hash(input_key="body", output_key="h")
    )
    assert texts(operator) == {"body": "The text.", "h": "The hash."}


def test_operators_of_a_user_say_it_in_their_docstring(registry: OperatorRegistry) -> None:
    @registry("data.text", _concurrency_mode="single")
    def grade(record: dict, output_key: str = "grade", limit: int = 1) -> None:
        """Grade a record.

        Args:
            record: The record.
            output_key: School grade, from 1 to 6.
            limit: The largest grade.
        """

    assert texts(grade()) == {"grade": "School grade, from 1 to 6."}
    assert texts(grade(output_key="note")) == {"note": "School grade, from 1 to 6."}


def test_columns_that_only_later_records_have_are_known_without_values(tmp_path: Path) -> None:
    records = [{"id": n} if n < 119 else {"rare": n} for n in range(120)]
    part = replace(write_input(tmp_path / "file.jsonl", records), rows=len(records))
    some = values_of([part], 100)
    assert some.values == {"id": set(range(100)), "rare": set()}
    assert not some.whole
    every = values_of([part], 200)
    assert every.values == {"id": set(range(119)), "rare": {119}}
    assert every.whole


@pytest.mark.parametrize(
    ("rows_in", "rows_out", "seen"),
    [(1000, 1000, 100), (1000, 900, 222), (1000, 100, 400), (1000, 4000, 100), (1000, 0, 400)],
)
def test_the_number_of_inspected_inputs_follows_from_the_first_results(
    tmp_path: Path, rows_in: int, rows_out: int, seen: int
) -> None:
    dataset = write_input(tmp_path / "file.jsonl", [{"n": n} for n in range(500)])
    result = replace(dataset, rows=rows_out)
    assert inputs_to_see(result, [replace(dataset, rows=rows_in)]) == seen
    assert inputs_to_see(result, [dataset]) == INPUT_RECORDS  # without a count
    if rows_out:
        compared = len(compared_values(result, [replace(dataset, rows=rows_in)])["n"])
        assert compared * rows_in / rows_out <= seen


registry = registry_of_calls()


@registry("data.columns")
def upper(record: dict, input_key: str = "text", output_key: str = "up|per") -> dict:
    return {**record, output_key: record[input_key].upper()}


UPSTREAM = dg.AssetKey(["docs", "before"])


def test_the_table_shows_column_type_origin_and_note(tmp_path: Path) -> None:
    before = dataset(tmp_path, "before", {"id": 1, "text": "a", "gone": None})
    after = dataset(tmp_path, "after", {"id": 1, "text": "a", "up|per": "A"})
    metadata = column_metadata(upper(), [(UPSTREAM, before)], after)
    assert metadata["dagster_dataops/columns"].value.splitlines() == [
        "| column | type | from | note |",
        "| --- | --- | --- | --- |",
        "| id | integer | id | passed through |",
        "| text | string | text | passed through |",
        r"| up\|per | string | text | new |",
        "| gone |  | gone | dropped |",
        "",
        "_1 record_",
    ]
    assert [c.name for c in metadata["dagster/column_schema"].value.columns] == [
        "id",
        "text",
        "up|per",
    ]


def test_an_unreadable_result_has_no_columns_and_raises_no_error(tmp_path: Path) -> None:
    assert column_metadata(upper(), [], JsonlDataset(tmp_path / "gone.jsonl", 5)) == {}


def test_without_inputs_there_is_no_lineage(tmp_path: Path) -> None:
    metadata = column_metadata(upper(input_key="a"), [], dataset(tmp_path, "after", {"a": 1}))
    assert "dagster/column_lineage" not in metadata
    assert "dagster/column_schema" in metadata
