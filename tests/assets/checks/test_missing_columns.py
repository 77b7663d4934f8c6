"""Tests of the check ``missing_columns``."""

import logging
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import chain, checks, data, pipeline
from dagster_dataops.errors import AbsentColumnError, PipelineDefinitionError
from tests.assets.helpers import (
    checks_of,
    definitions_of,
    execute,
    metadata_of,
    pipeline_of,
)
from tests.execution.helpers import lines
from tests.registries import OperatorRegistry


@pytest.fixture
def source(tmp_path: Path) -> Path:
    records = [{"id": n, **({"body": f"text {n}"} if n % 4 else {})} for n in range(20)]
    path = tmp_path / "docs.jsonl"
    path.write_bytes(lines(records))
    return path


def results_of(result: Any) -> dict[str, tuple[bool, str | None]]:
    found = [one for one in checks_of(result) if one.check_name == "missing_columns"]
    assert all(one.severity is dg.AssetCheckSeverity.WARN for one in found)
    return {one.asset_key.path[-1]: (one.passed, one.description) for one in found}


@pytest.mark.slow
def test_records_that_lack_a_column_are_a_warning_and_stop_nothing(
    source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    ppl = pipeline_of(
        clean=data.text.Normalize(input_key="body", output_key="clean"),
        both=chain(data.shape.AddId(), data.text.Normalize(input_key="body", output_key="again")),
        unique=data.dedup.Exact(input_key="body"),
        sorted=data.sample.Sort("body"),
        file=data.export.Csv("docs.csv", columns=["id", "body"]),
    )
    result = execute(definitions_of(ppl, source, root), instance)
    assert result.success
    assert results_of(result) == {
        "clean": (False, "5 of 20 records lack the column 'body'"),
        "both": (False, "5 of 20 records lack the column 'Normalize: body'"),
        "unique": (False, "5 of 20 records lack the column 'body'"),
        "sorted": (False, "1 of 16 records lacks the column 'body'"),
        "file": (False, "1 of 16 records lacks the column 'body'"),
    }
    metadata = metadata_of(result, "docs", "clean")
    assert metadata["missing_columns"].endswith("| body | 5 |")
    assert metadata["notes"] == "5 of 20 records lack the column 'body'"
    warned = [one for one in instance.all_logs(result.run_id) if one.level == logging.WARNING]
    texts = [one.user_message for one in warned if not one.is_dagster_event]
    assert texts[0] == "clean: 5 of 20 records lack the column 'body'"


@pytest.mark.slow
def test_only_operators_that_need_columns_have_the_check(
    source: Path, root: Path, instance: dg.DagsterInstance, registry: OperatorRegistry
) -> None:
    @registry("data.own", _concurrency_mode="single")
    def plain(record: dict) -> dict:
        return record

    @registry("data.own", reads=["id"], _concurrency_mode="single")
    def needing(record: dict) -> dict:
        return record

    allowed = data.text.Normalize(_missing="allow")
    ppl = pipeline_of(
        plain=plain(), allowed=allowed, needing=needing(), json=data.export.Jsonl("a.jsonl")
    )
    assert results_of(execute(definitions_of(ppl, source, root), instance)) == {
        "needing": (True, "No record was counted that lacks a column.")
    }


def test_a_column_of_no_record_fails_the_step(
    source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(clean=data.text.Normalize()), source, root)
    result = execute(definitions, instance, raise_on_error=False)
    assert not result.success
    assert not list(root.rglob("*_results.jsonl"))
    with pytest.raises(AbsentColumnError, match="They have: id, body"):
        execute(definitions, instance)


def test_the_launchpad_chooses_another_rule(
    source: Path, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(pipeline_of(clean=data.text.Normalize()), source, root)
    config = {"ops": {"docs__clean": {"config": {"missing": "allow"}}}}
    assert execute(definitions, instance, config).success
    config["ops"]["docs__clean"]["config"]["missing"] = "never"
    with pytest.raises(dg.DagsterInvalidConfigError):
        execute(definitions, instance, config)


def test_a_node_is_not_named_as_its_source(source: Path, root: Path) -> None:
    with pipeline("docs") as ppl:
        ppl.docs = data.text.Normalize(input_key="body")
    with pytest.raises(
        PipelineDefinitionError, match=r"'docs' and its source, the file .*one asset"
    ):
        definitions_of(ppl, source, root)


def test_another_check_cannot_have_the_name(source: Path, root: Path) -> None:
    ppl = pipeline_of(clean=data.text.Normalize(input_key="body"))
    with pytest.raises(PipelineDefinitionError, match="missing_columns"):
        definitions_of(
            ppl, source, root, checks={"clean": [checks.row_count(min=1, name="missing_columns")]}
        )
