"""Tests of ``set_output`` under Dagster: the export, and its metadata."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import Operator
from dagster_dataops.errors import PipelineDefinitionError
from tests.assets.helpers import (
    Records,
    definitions_of,
    execute,
    metadata_of,
    pipeline_of,
    read_jsonl,
    result_of,
)
from tests.registries import OperatorRegistry

LETTERS = dg.StaticPartitionsDefinition(["a", "b/c"])


@pytest.fixture
def mark(registry: OperatorRegistry) -> Callable[[], Operator]:
    @registry("data.text", _concurrency_mode="thread")
    def mark(record: dict) -> dict:
        if record["text"] == "text 1":
            msg = "one"
            raise ValueError(msg)
        return record | {"marked": True}

    return mark  # type: ignore[return-value]


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_every_result_with_an_output_is_exported_and_its_metadata_names_the_file(
    mark: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    layout: Any,
) -> None:
    ppl = pipeline_of(
        a=mark().set_output(tmp_path / "exports"),
        b=mark(),
        c=mark().set_output(tmp_path / "last.jsonl"),
    )
    definitions = definitions_of(ppl, records(3), root, layout=layout)
    result = execute(definitions, instance)

    assert read_jsonl(tmp_path / "exports" / "a.jsonl") == result_of(root, "docs", "a")
    assert read_jsonl(tmp_path / "last.jsonl") == result_of(root, "docs", "c")
    assert metadata_of(result, "docs", "a")["exported_to"] == str(tmp_path / "exports" / "a.jsonl")
    assert metadata_of(result, "docs", "c")["exported_to"] == str(tmp_path / "last.jsonl")
    assert "exported_to" not in metadata_of(result, "docs", "b")


def test_a_kept_result_is_exported_again_if_its_export_is_missing(
    mark: Any, records: Records, root: Path, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    target = tmp_path / "out.jsonl"
    definitions = definitions_of(pipeline_of(a=mark().set_output(target)), records(1), root)
    execute(definitions, instance)
    target.unlink()

    job = definitions.resolve_job_def("docs_retry_failed_records")
    assert job.execute_in_process(instance=instance).success
    assert read_jsonl(target) == result_of(root, "docs", "a")


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_a_preview_exports_nothing(
    mark: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    layout: Any,
) -> None:
    ppl = pipeline_of(a=mark().set_output(tmp_path / "exports"))
    definitions = definitions_of(ppl, records(3), root, layout=layout)
    config = {"limit": 1}
    ops = (
        {"docs": {"config": {"a": config}}}
        if layout == "single_step"
        else {"docs__a": {"config": config}}
    )
    assert execute(definitions, instance, {"ops": ops}).success
    preview = definitions.resolve_job_def("docs_preview")
    assert preview.execute_in_process(instance=instance).success
    assert not (tmp_path / "exports").exists()


@pytest.mark.parametrize("layout", ["steps", "single_step"])
def test_each_partition_is_a_file_in_the_folder_of_its_node(
    mark: Any, root: Path, instance: dg.DagsterInstance, tmp_path: Path, layout: Any
) -> None:
    def texts(key: str) -> list[dict[str, Any]]:
        return [{"text": key}]

    ppl = pipeline_of(m=mark().set_output(tmp_path / "exports"))
    definitions = definitions_of(ppl, texts, root, partitions_def=LETTERS, layout=layout)
    for key in LETTERS.get_partition_keys():
        execute(definitions, instance, partition_key=key)

    folder = tmp_path / "exports" / "m"
    assert read_jsonl(folder / "a.jsonl") == [{"text": "a", "marked": True}]
    assert read_jsonl(folder / "b%2Fc.jsonl") == [{"text": "b/c", "marked": True}]


def test_one_file_for_all_partitions_is_refused_where_it_is_defined(
    mark: Any, root: Path, tmp_path: Path
) -> None:
    ppl = pipeline_of(m=mark().set_output(tmp_path / "out.jsonl"))
    source = tmp_path / "{partition}.jsonl"
    with pytest.raises(PipelineDefinitionError, match=r"node 'm' .*out\.jsonl; name a folder"):
        definitions_of(ppl, source, root, partitions_def=LETTERS)
