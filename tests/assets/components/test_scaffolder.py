"""Scaffolded pipelines."""

import pytest

from dagster_dataops.assets.components.scaffolder import name_of
from tests.assets.component_project import WARNED_OF

pytestmark = WARNED_OF


@pytest.mark.parametrize(
    ("folder", "name"), [("docs", "docs"), ("my-docs", "my_docs"), ("01-docs", "pipeline_01_docs")]
)
def test_a_pipeline_is_named_by_its_folder(tmp_path, folder, name):
    assert name_of(tmp_path / folder) == name
