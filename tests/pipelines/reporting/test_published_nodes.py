"""Tests of finding the nodes of a report."""

from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import To, data_register, pipeline
from dagster_dataops.errors import DataOpsError
from dagster_dataops.pipelines.reporting.published_nodes import published_nodes
from tests.pipelines.reporting.conftest import judge, shorter


@data_register("data.reported", _concurrency_mode="single", outputs=["even", "odd"])
def parity(record: dict[str, Any]) -> Any:
    """Send a record to one of two results."""
    return To("odd" if record["n"] % 2 else "even", record)


def test_a_node_is_found_after_those_of_its_inputs(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.zebra = judge()
        ppl.yak = shorter()
        ppl.ape = shorter()
    ppl.materialize(source)
    assert [node.name for node in published_nodes([root / "docs"])] == ["zebra", "yak", "ape"]


def test_a_node_with_several_results_is_one_node(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.parts = parity()
        ppl.add("last", shorter(), inputs=[ppl.parts.odd])
    ppl.materialize(source)
    parts, last = published_nodes([root / "docs"])
    assert [path.parent.name for path in parts.results] == ["even", "odd"]
    assert (parts.name, last.inputs) == ("parts", parts.results[1:])


def test_a_folder_without_nodes_has_none(tmp_path: Path):
    assert published_nodes([tmp_path / "missing" / "folder"]) == []
    (node,) = published_nodes([tmp_path / "node"])
    assert (node.state, node.manifest, node.results, node.inputs) == ("not run", None, [], [])


def test_a_damaged_manifest_is_no_result(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.one = shorter()
    ppl.materialize(source)
    (root / "docs/one/one_results.jsonl.json").write_text("{}")
    (node,) = published_nodes([root / "docs" / "one"])
    assert node.state == "not run"


def test_an_unfinished_node_says_how_far_it_is(root: Path, source: Path):
    with pipeline("docs") as ppl:
        ppl.one = judge(_ignore_errors=False)
    with pytest.raises(DataOpsError, match="four"):
        ppl.materialize(source)
    (node,) = published_nodes([root / "docs" / "one"])
    assert "unfinished" in node.state
