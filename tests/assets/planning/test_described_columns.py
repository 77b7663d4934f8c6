"""Tests of columns=: descriptions in the column schema, and columns that no record has."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import (
    DataOpsResource,
    Pipeline,
    build_definitions,
    dataops_assets,
    dataops_resources,
    pipeline,
)
from dagster_dataops.errors import ConfigurationError, PipelineDefinitionError
from tests.assets.component_project import WARNED_OF, Project
from tests.assets.helpers import definitions_of, execute, log_of, resource_at, write_jsonl
from tests.registries import OperatorRegistry

pytestmark = WARNED_OF
LAYOUTS = pytest.mark.parametrize("layout", ["steps", "single_step"])


@pytest.fixture
def ppl(registry: OperatorRegistry) -> Pipeline:
    @registry("data.text", _concurrency_mode="single")
    def rate(record: dict, output_key: str = "score") -> None:
        """Rate a record.

        Args:
            record: The record.
            output_key: Column of the score.
        """
        record[output_key] = 1

    @registry("data.text", _concurrency_mode="single")
    def drop(record: dict) -> None:
        del record["html"]

    with pipeline("docs") as made:
        made.rated = rate()
        made.last = drop()
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "pages.jsonl", [{"html": "<p>", "text": "a"}, {"html": ""}])


def columns_of(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, str | None]]:
    found = {}
    for event in result.get_asset_materialization_events():
        schema = event.materialization.metadata["dagster/column_schema"].value
        found[event.asset_key.path[-1]] = {one.name: one.description for one in schema.columns}
    return found


def warnings_of(instance: dg.DagsterInstance, result: Any) -> list[str]:
    return [line for line in log_of(instance, result.run_id) if "columns= describes" in line]


@LAYOUTS
def test_descriptions_come_from_the_option_and_from_docstrings(
    layout: Any, ppl: Pipeline, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    given = {"text": "The text.", "last": {"text": "The last text."}, "source": {"html": "Raw."}}
    result = execute(definitions_of(ppl, source, root, layout=layout, columns=given), instance)
    assert columns_of(result) == {
        "pages": {"html": "Raw.", "text": "The text."},
        "rated": {"html": "Raw.", "text": "The text.", "score": "The score."},
        "last": {"text": "The last text.", "score": "The score."},
    }
    assert warnings_of(instance, result) == []


def test_the_option_precedes_docstrings_and_is_passed_on(
    ppl: Pipeline, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    given = {"rated": {"score": "Mine."}}
    found = columns_of(execute(definitions_of(ppl, source, root, columns=given), instance))
    assert found["rated"]["score"] == found["last"]["score"] == "Mine."
    assert found["pages"]["html"] is None


@LAYOUTS
def test_columns_that_no_record_has_are_named_with_those_that_are_there(
    layout: Any, ppl: Pipeline, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    given = {"html": "Raw.", "txt": "The text.", "rated": {"scor": "The score.", "text": "T."}}
    result = execute(definitions_of(ppl, source, root, layout=layout, columns=given), instance)
    rated, last = warnings_of(instance, result)
    assert rated == (
        "docs/rated: columns= describes 'scor' (did you mean 'score'?), which no record has (all 2 "
        "records); it has 'html', 'text', 'score'"
    )
    assert last == (
        "docs/last: columns= describes 'txt' (did you mean 'text'?), which no record has (all 2 "
        "records); it has 'text', 'score'"
    )


def test_an_empty_result_has_no_unknown_columns(
    ppl: Pipeline, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    source = write_jsonl(tmp_path / "none.jsonl", [])
    result = execute(definitions_of(ppl, source, root, columns={"any": "Any."}), instance)
    assert warnings_of(instance, result) == []


def test_partitions_are_described_and_compared(
    ppl: Pipeline, tmp_path: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"html": "", "text": "x"}])
    parts = dg.StaticPartitionsDefinition(["a"])
    definitions = definitions_of(
        ppl,
        str(tmp_path / "{partition}.jsonl"),
        root,
        partitions_def=parts,
        columns={"html": "Raw.", "text": "The text.", "nothing": "?"},
    )
    result = execute(definitions, instance, partition_key="a")
    assert columns_of(result)["last"]["text"] == "The text."
    (warning,) = warnings_of(instance, result)
    assert "'nothing', which no record has" in warning


def test_a_stream_as_source_is_described(
    ppl: Pipeline, root: Path, instance: dg.DagsterInstance
) -> None:
    from dagster_dataops import read_sequence

    stream = read_sequence([{"html": "", "text": "x"}]).and_return()
    given = {"text": "The text.", "source": {"html": "Raw."}}
    definitions = definitions_of(ppl, stream, root, columns=given, stream_name="made")
    found = columns_of(execute(definitions, instance))
    assert found["made"] == {"html": "Raw.", "text": "The text."}


def test_a_schema_of_all_records_keeps_the_descriptions(
    ppl: Pipeline, source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    @dataops_assets(ppl, source=source, columns={"text": "The text."})
    def docs(context: dg.AssetExecutionContext, dataops: DataOpsResource) -> Iterator[Any]:
        yield from dataops.run(context).fetch_column_metadata()

    definitions = dg.Definitions(assets=[docs], resources=dataops_resources(resource_at(root)))
    found = columns_of(execute(definitions, instance))
    assert found["last"] == {"text": "The text.", "score": "The score."}


@pytest.mark.parametrize(
    ("given", "error", "named"),
    [
        ({"text": 3}, ConfigurationError, "columns.text is 3; it must be a text that says"),
        ({"text": " "}, ConfigurationError, "columns.text is ' '"),
        ({"text": None}, ConfigurationError, "columns.text is None"),
        ({"rated": {"score": 1}}, ConfigurationError, "columns.rated.score is 1"),
        ({"ratd": {"score": "S."}}, PipelineDefinitionError, "its nodes are rated, last, source"),
        (["text"], ConfigurationError, "Setting columns is ['text']; it must be Mapping"),
    ],
)
def test_what_is_no_description_is_refused_when_definitions_load(
    given: Any, error: type[Exception], named: str, ppl: Pipeline, source: Path
) -> None:
    with pytest.raises(error) as caught:
        build_definitions(ppl, source=source, columns=given)
    assert named in str(caught.value)


YAML = """
name: docs
source: texts.jsonl
modules: [operators.py]
columns: {id: "The number.", mark: {text: "The text."}}
operators:
  - name: mark
    operator: "{group}.mark"
    columns: {mark: "The mark."}
"""


def test_yaml_has_the_option_and_a_field_of_operators(
    project: Project, instance: dg.DagsterInstance
) -> None:
    project.write(YAML)
    with project.loaded() as definitions:
        found = columns_of(execute(definitions, instance))
    assert found["texts"] == {"id": "The number.", "text": None}
    assert found["mark"] == {"id": "The number.", "text": "The text.", "mark": "The mark."}


@pytest.mark.parametrize(
    ("old", "new", "line", "named"),
    [
        ('id: "The number."', 'id: ""', 7, "columns.id is ''"),
        ('text: "The text."', 'text: ""', 7, "columns.mark.text is ''"),
        ("mark: {text", "mrk: {text", 7, "columns names 'mrk'"),
        ('mark: "The mark."', 'mark: ""', 11, "columns.mark.mark is ''"),
    ],
)
def test_a_bad_description_in_yaml_is_named_with_its_line(
    old: str, new: str, line: int, named: str, project: Project
) -> None:
    project.write(YAML.replace(old, new))
    with pytest.raises(Exception) as caught, project.loaded():  # noqa: PT011 - Dagster wraps it
        pass
    errors, error = "", caught.value
    while error is not None:
        errors, error = f"{errors}\n{error}", error.__cause__ or error.__context__
    assert named in errors
    assert f"defs.yaml:{line}" in errors
