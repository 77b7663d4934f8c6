"""Checks by a JSON Schema."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import checks
from dagster_dataops.errors import ConfigurationError
from tests.assets.checks.finding import Find

SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "meta": {"properties": {"lang": {"enum": ["en"]}}}},
}


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


@pytest.mark.slow
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
