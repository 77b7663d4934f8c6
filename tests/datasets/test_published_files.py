"""Tests of dagster_dataops.datasets.published_files."""

from pathlib import Path

from dagster_dataops.checkpoints.folder.manifest import NodeFolder
from dagster_dataops.datasets.published_files import MANIFEST, RESULT, parts_of


def test_the_files_of_a_node_begin_with_its_name() -> None:
    folder = NodeFolder(Path("root/docs"), "docs")
    assert folder.result == Path("root/docs") / f"docs{RESULT}"
    assert folder.manifest == Path("root/docs") / f"docs{MANIFEST}"


def test_the_parts_of_a_result_lie_beside_it_in_a_folder_with_the_name_of_the_node() -> None:
    assert parts_of(Path("root/docs/docs_results.jsonl")) == Path("root/docs/docs_parts")
