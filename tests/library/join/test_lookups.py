from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import data, pipeline
from dagster_dataops.errors import DefinitionError, NewerVersionError

TABLE = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 2, "name": "too"}, {"id": None}]
GIVEN = [{"id": 1, "text": "a"}, {"id": 3, "text": "b"}, {"text": "c"}, {"id": 2, "text": "d"}]


@pytest.fixture(params=["list", "file", "artefact"])
def table(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Any:
    if request.param == "list":
        return TABLE
    if request.param == "artefact":
        return data.join.Table("id", max_memory_mb=1)(TABLE)
    path = tmp_path / "table.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in TABLE))
    return path


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, {"a": "one", "b": None, "c": None}),
        ({"duplicates": "first"}, {"a": "one", "b": None, "c": None, "d": "two"}),
        ({"duplicates": "last", "how": "inner"}, {"a": "one", "d": "too"}),
        ({"how": "semi"}, {"a": None, "d": None}),
        ({"how": "anti"}, {"b": None, "c": None}),
    ],
)
def test_columns_of_the_table_are_added(table: Any, options: Any, names: Any) -> None:
    found = data.join.Lookup(table, "id", **options)(GIVEN)
    assert {row["text"]: row.get("name") for row in found} == names


def test_all_matches_make_records(table: Any) -> None:
    operator = data.join.Lookup(
        table, "id", duplicates="all", columns=["name"], _concurrency_mode="process"
    )
    assert [row["name"] for row in operator(GIVEN)] == ["one", None, None, "two", "too"]


def test_a_table_is_a_node_of_a_pipeline(root: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.table = data.join.Table("id")
        ppl.found = data.join.Lookup(ppl.table, "id", columns=["text"], suffix="_again")
    assert ppl(GIVEN[:1]) == [{"id": 1, "text": "a", "text_again": "a"}]


def test_an_empty_table_matches_nothing(root: Path) -> None:
    assert data.join.Lookup(data.join.Table("id")([]), "id")(GIVEN) == GIVEN


def test_keys_are_equal_by_the_value_of_numbers_but_not_across_types(table: Any) -> None:
    given = [{"id": one} for one in (1.0, 1.5, "1", True, [1])]
    found = data.join.Lookup(table, "id", columns=["name"])(given)
    assert [row["name"] for row in found] == ["one", None, None, None, None]


def test_a_table_without_the_key_is_refused() -> None:
    expected = "no record of the table has the key id; the last one has no, name; give the names"
    with pytest.raises(DefinitionError, match=expected):
        data.join.Lookup([{"no": 1, "name": "one"}], "id")


def test_a_table_larger_than_memory_is_refused() -> None:
    table = ({"id": n, "text": "x" * 1000} for n in range(2000))
    with pytest.raises(DefinitionError, match="more than 1 MB of memory; make it an artefact"):
        data.join.Lookup(list(table), "id", max_memory_mb=1)
    with pytest.raises(DefinitionError, match="use join.Merge"):
        data.join.Lookup([], "id", how="outer")


def test_columns_that_no_row_of_the_table_has_are_refused():
    table = [{"id": 1, "name": "a"}, {"id": 2, "name": "b", "age": 3}]
    with pytest.raises(DefinitionError, match="no record of table has the column 'nmae'.*'name'"):
        data.join.Lookup(table, "id", columns=["age", "nmae"])
    found = data.join.Lookup(table, "id", columns=["age"])([{"id": 1}, {"id": 2}])
    assert found == [{"id": 1, "age": None}, {"id": 2, "age": 3}]


def test_a_table_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    data.join.Table("id").build(iter(TABLE), tmp_path)
    facts = tmp_path / "table.json"
    assert orjson.loads(facts.read_bytes()) == {"format": 1}
    facts.write_bytes(b'{"format":2}')
    with pytest.raises(NewerVersionError, match=r"table\.json has format 2, .* reads 1"):
        data.join.Lookup(tmp_path, "id")
    facts.write_bytes(b"[]")
    with pytest.raises(DefinitionError, match=r"is no folder of join\.Table: table\.json: "):
        data.join.Lookup(tmp_path, "id")


def test_a_table_without_the_number_of_a_format_is_read(tmp_path: Path) -> None:
    data.join.Table("id").build(iter(TABLE), tmp_path)
    (tmp_path / "table.json").unlink()
    found = data.join.Lookup(tmp_path, "id", duplicates="first")(GIVEN[:1])
    assert found == [{"id": 1, "text": "a", "name": "one"}]
