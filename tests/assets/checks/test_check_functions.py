"""Tests of declared checks over one file: passes, violations and their lines."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import checks
from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.findings import Finding
from dagster_dataops.assets.checks.inspectors import inspect
from dagster_dataops.assets.components.check_fields import CheckModel
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.errors import ConfigurationError
from tests.assets.helpers import numbered, write_jsonl

Find = Callable[..., Finding]
SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "meta": {"properties": {"lang": {"enum": ["en"]}}}},
}


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Return a function that runs one check over records."""

    def find(check: DeclaredCheck, rows: list[dict[str, Any]]) -> Finding:
        dataset = JsonlDataset.of_file(write_jsonl(tmp_path / "rows.jsonl", rows))
        inspector = check.inspector()
        return inspector.finding(inspect(dataset, None, [inspector]))

    return find


@pytest.mark.parametrize(
    ("rows", "passed", "text"),
    [
        (0, False, "0 records, fewer than 1."),
        (1, True, "1 records."),
        (3, True, "3 records."),
        (4, False, "4 records, more than 3."),
    ],
)
def test_row_count_has_two_bounds(rows: int, passed: bool, text: str, find: Find) -> None:
    finding = find(checks.row_count(min=1, max=3), list(numbered(rows)))
    assert (finding.passed, finding.text) == (passed, text)
    assert finding.numbers == {"rows": rows}


def test_row_count_with_one_bound_checks_only_that_bound(find: Find) -> None:
    assert find(checks.row_count(max=3), []).passed
    assert find(checks.row_count(min=3), list(numbered(9))).passed


def test_required_columns_may_be_null(find: Find) -> None:
    rows = [{"id": 1, "text": None}, {"id": 2}, {"text": ""}]
    finding = find(checks.required_columns("id", "text"), rows)
    assert finding.text == "2 of 3 records offend."
    assert finding.rows() == [
        {"line": 2, "problem": "lacks text", "value": '{"id":2}'},
        {"line": 3, "problem": "lacks id", "value": '{"text":""}'},
    ]


def test_null_and_missing_values_are_found(find: Find) -> None:
    rows = [{"text": ""}, {"text": None}, {"other": 1}, {"text": 0}]
    finding = find(checks.no_nulls("text"), rows)
    assert [(row["line"], row["problem"]) for row in finding.rows()] == [
        (2, "text is null"),
        (3, "text is missing"),
    ]


def test_repeated_values_are_found_and_null_does_not_count(find: Find) -> None:
    values = [1, "1", None, 1.5, None, "1", True, [1], [1]]
    finding = find(checks.unique("id"), [{"id": value} for value in values] + [{}, {}])
    assert [(row["line"], row["value"]) for row in finding.rows()] == [(6, "1"), (9, "[1]")]
    assert finding.text == "2 of 11 records repeat an earlier one."


def test_several_columns_are_unique_together(find: Find) -> None:
    pairs = list(itertools.product("ab", "xy"))
    rows = [{"one": one, "other": other} for one, other in [*pairs, ("b", "x")]]
    finding = find(checks.unique("one", "other"), rows)
    assert [(row["line"], row["value"]) for row in finding.rows()] == [
        (5, '{"one":"b","other":"x"}')
    ]
    assert find(checks.unique("one", "other"), rows[:4]).passed


def test_repeats_are_found_beyond_the_memory_limit(
    find: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dagster_dataops.assets.checks.kinds.unique._IN_MEMORY", 1000)
    monkeypatch.setattr("dagster_dataops.assets.checks.kinds.unique._SORT_BYTES", 10_000)
    rows = [{"id": number % 4_900} for number in range(5_000)]
    finding = find(checks.unique("id"), rows)
    assert finding.violations.count == 100
    assert [row["line"] for row in finding.rows()] == list(range(4_901, 4_911))


def test_records_are_valid_by_a_json_schema(find: Find) -> None:
    pytest.importorskip("jsonschema_rs", reason="extra json-schema is not installed")
    rows = [{"id": 1}, {"id": "2"}, {"id": 3, "meta": {"lang": "de"}}, {}]
    finding = find(checks.json_schema(SCHEMA), rows)
    assert [(row["line"], row["problem"]) for row in finding.rows()] == [
        (2, 'id: "2" is not of type "integer"'),
        (3, 'meta.lang: "de" is not one of "en"'),
        (4, '"id" is a required property'),
    ]


def test_a_json_schema_may_be_in_a_file(find: Find, tmp_path: Path) -> None:
    pytest.importorskip("jsonschema_rs", reason="extra json-schema is not installed")
    path = tmp_path / "schema.json"
    path.write_bytes(orjson.dumps({**SCHEMA, "title": "Text"}))
    check = checks.json_schema(path)
    assert check.description == "Every record is valid by the JSON Schema 'Text'."
    assert not find(check, [{}]).passed


@pytest.mark.parametrize("schema", [{"type": "nothing"}, {"$ref": "#/nowhere"}, "nowhere.json"])
def test_an_invalid_json_schema_is_refused_at_its_declaration(schema: Any) -> None:
    pytest.importorskip("jsonschema_rs", reason="extra json-schema is not installed")
    with pytest.raises(ConfigurationError, match="json_schema is"):
        checks.json_schema(schema)


def test_without_the_package_the_extra_is_named(run_python: Callable[..., str]) -> None:
    code = (
        "import sys; sys.modules['jsonschema_rs'] = None\n"
        "from dagster_dataops import checks\n"
        "try: checks.json_schema({})\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    printed = run_python(code)
    assert printed.startswith("MissingExtraError")
    assert "pip install 'dagster-dataops[json-schema]'" in printed


def test_only_the_first_offending_records_are_reported(find: Find) -> None:
    finding = find(checks.no_nulls("no"), [{"text": "x" * 1000}] * 500)
    assert finding.violations.count == 500
    rows = finding.rows()
    assert [row["line"] for row in rows] == list(range(1, 11))
    assert all(len(str(row["value"])) == 100 for row in rows)


def test_lines_count_as_an_editor_counts_them_and_bad_ones_offend(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1}\n\nno json\n[1]\n{"id": null}\n{"id": 1}')
    declared = [checks.no_nulls("id"), checks.unique("id"), checks.row_count(max=4)]
    inspectors = [check.inspector() for check in declared]
    inspected = inspect(JsonlDataset.of_file(path), None, inspectors)
    nulls, repeats, rows = (inspector.finding(inspected) for inspector in inspectors)
    assert [row["line"] for row in nulls.rows()] == [3, 4, 5]
    assert [row["line"] for row in repeats.rows()] == [6]
    assert (rows.passed, rows.numbers) == (False, {"rows": 5})


def test_an_inspector_that_found_nothing_leaves_no_file_behind(
    find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("dagster_dataops.assets.checks.kinds.unique._SORT_BYTES", 1000)
    assert find(checks.unique("id"), list(numbered(1000))).passed
    assert list((tmp_path / "scratch").iterdir()) == []


def test_every_file_has_a_new_inspector(find: Find) -> None:
    check = checks.unique("id")
    assert check.inspector() is not check.inspector()
    assert find(check, [{"id": 1}]).passed
    assert find(check, [{"id": 1}]).passed


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (checks.row_count, "given min, max or both"),
        (lambda: checks.row_count(min=2, max=1), "min <= max"),
        (lambda: checks.max_dropped(1.5), r"in \[0, 1\]"),
        (checks.no_nulls, "one or more names of columns"),
        (lambda: checks.unique(["id"]), "one or more names of columns"),  # type: ignore[arg-type]
        (lambda: checks.required_columns("a", severity="BAD"), "WARN or ERROR"),  # type: ignore[arg-type]
        (lambda: checks.no_nulls("a", severity="WARN", blocking=True), "ERROR for a check that"),
        (lambda: checks.no_nulls("a", name="a b"), "letters, digits and underscores"),
    ],
)
def test_impossible_checks_are_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        declare()


def test_names_come_of_columns_and_descriptions_are_sentences() -> None:
    declared = [
        checks.no_nulls("text"),
        checks.unique("a.b", "ç"),
        checks.required_columns("a", "b", "c"),
        checks.row_count(min=1, max=10_000),
        checks.max_dropped(0.125),
    ]
    assert [(check.name, check.description) for check in declared] == [
        ("no_nulls_text", "text is never null or missing."),
        ("unique_a_b__", "No two records have the same a.b and ç."),
        ("required_columns", "Every record has a, b and c."),
        ("row_count", "There are at least 1 and at most 10,000 records."),
        ("max_dropped", "At most 12.5 % of the input records are dropped."),
    ]


def test_every_kind_has_a_public_name_and_a_field_of_that_name_in_a_defs_yaml() -> None:
    fields = CheckModel.model_json_schema()["properties"]
    for name, kind in checks.CHECK_KINDS.items():
        assert getattr(checks, name) is kind.declare
        assert name in fields
