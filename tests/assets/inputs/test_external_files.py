"""Tests of source files: reported once per change, and tagged on the results that read them."""

import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops.errors import InputError
from tests.assets.helpers import (
    Records,
    dataset_of,
    definitions_of,
    digest_of,
    execute,
    metadata_of,
    numbered,
    pipeline_of,
    tags_of,
)
from tests.registries import OperatorRegistry

SOURCE = dg.AssetKey(["docs", "texts"])
TAG = "dagster/input_data_version/docs/texts"


@pytest.fixture
def same(registry: OperatorRegistry) -> Any:
    @registry("data.text", _concurrency_mode="single")
    def same(record: dict) -> None: ...

    return pipeline_of(same=same())


def reported(instance: dg.DagsterInstance) -> list[dg.AssetMaterialization]:
    """Return the reports of the source, the latest first."""
    records = instance.fetch_materializations(SOURCE, limit=10).records
    return [record.asset_materialization for record in records if record.asset_materialization]


def tag_of(instance: dg.DagsterInstance) -> str | None:
    return tags_of(instance, "docs", "same")[TAG]


def test_the_digest_of_a_file_is_that_of_a_result_with_its_bytes(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path / "r.jsonl", numbered(5))
    assert digest_of(dataset.path) == dataset.fingerprint
    with pytest.raises(InputError):
        digest_of(tmp_path / "gone")


def test_a_step_reports_the_file_it_reads_with_size_rows_and_columns(
    same: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    path = records(8)
    result = execute(definitions_of(same, path, root), instance)
    metadata = metadata_of(result, "docs", "texts")
    assert metadata["dagster/row_count"] == 8
    assert metadata["dagster/size_bytes"] == path.stat().st_size
    assert [c.name for c in metadata["dagster/column_schema"].columns] == ["id", "text"]
    assert reported(instance)[0].tags["dagster/data_version"] == digest_of(path)
    assert tag_of(instance) == digest_of(path)


def test_a_file_is_reported_again_only_when_it_has_changed(
    same: Any, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    definitions = definitions_of(same, records(8), root)
    execute(definitions, instance)
    execute(definitions, instance)
    assert len(reported(instance)) == 1
    changed = digest_of(records(9))
    execute(definitions, instance)
    assert len(reported(instance)) == 2
    assert tag_of(instance) == changed


def test_a_file_that_changes_under_the_step_has_no_version(
    registry: OperatorRegistry, records: Records, root: Path, instance: dg.DagsterInstance
) -> None:
    path = records(3)

    @registry("data.text")
    def touching(record: dict) -> dict:
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # the change time moves
        return record

    ppl = pipeline_of(same=touching(_concurrency_mode="single"))
    execute(definitions_of(ppl, path, root), instance)
    assert reported(instance) == []
    assert tag_of(instance) == "INITIAL"
