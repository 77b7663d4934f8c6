"""Fixtures that several modules of this folder share."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.assets.checks.declared_check import DeclaredCheck
from dagster_dataops.assets.checks.findings import Finding
from dagster_dataops.assets.checks.inspectors import inspect
from dagster_dataops.datasets.dataset import JsonlDataset
from tests.assets.checks.finding import Find
from tests.assets.helpers import write_jsonl


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Return the finding of one check over some records."""

    def find(check: DeclaredCheck, rows: list[dict[str, Any]]) -> Finding:
        dataset = JsonlDataset.of_file(write_jsonl(tmp_path / "rows.jsonl", rows))
        inspector = check.inspector()
        return inspector(inspect(dataset, None, [inspector]))

    return find
