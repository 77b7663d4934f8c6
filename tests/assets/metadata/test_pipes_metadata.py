"""Tests that metadata passes through Dagster Pipes unchanged."""

import json

import dagster as dg
from dagster._core.definitions.metadata.external_metadata import metadata_map_from_external

from dagster_dataops.assets.metadata.pipes_metadata import pipes_metadata
from tests.each import each

_COLUMN = dg.TableColumn(
    "text",
    "string",
    description="what it is",
    constraints=dg.TableColumnConstraints(nullable=False, unique=True, other=["short"]),
    tags={"pii": ""},
)
VALUES = {
    "asset": dg.MetadataValue.asset(dg.AssetKey(["docs", "clean"])),
    "bool": dg.MetadataValue.bool(True),
    "float": dg.MetadataValue.float(0.5),
    "int": dg.MetadataValue.int(3),
    "json": dg.MetadataValue.json({"a": [1, None]}),
    "lineage": dg.MetadataValue.column_lineage(
        dg.TableColumnLineage(
            {"text": [dg.TableColumnDep(dg.AssetKey(["a/b", "c"]), "raw")], "new": []}
        )
    ),
    "md": dg.MetadataValue.md("| a |"),
    "notebook": dg.MetadataValue.notebook("/n.ipynb"),
    "null": dg.MetadataValue.null(),
    "path": dg.MetadataValue.path("/data/x"),
    "run": dg.MetadataValue.dagster_run("1234"),
    "schema": dg.MetadataValue.table_schema(dg.TableSchema([_COLUMN, dg.TableColumn("n", "int")])),
    "table": dg.MetadataValue.table(
        [dg.TableRecord({"text": "a"})], schema=dg.TableSchema([_COLUMN])
    ),
    "text": dg.MetadataValue.text("größer"),
    "timestamp": dg.MetadataValue.timestamp(1.5),
    "url": dg.MetadataValue.url("https://example.com"),
}


@each("name", list(VALUES))
def test_a_value_arrives_as_it_was(name):
    value = VALUES[name]
    sent = json.loads(json.dumps(pipes_metadata({name: value})))
    assert metadata_map_from_external(sent) == {name: value}


def test_a_value_that_pipes_does_not_know_arrives_as_a_text():
    sent = pipes_metadata({"job": dg.MetadataValue.job("clean", "here")})
    assert sent["job"]["type"] == "text"
    assert "clean" in sent["job"]["raw_value"]
