"""Tests of the state of each node, in words."""

import pytest

from dagster_dataops import config, data, data_register, pipeline
from dagster_dataops.errors import RecordError
from dagster_dataops.pipelines.node_state import node_states

ROWS = [{"n": number} for number in range(5)]


@data_register("data.node_state_tests", _concurrency_mode="single", _ignore_errors=False)
def keep(record: dict, stop_at: int = -1) -> dict:
    if record["n"] == stop_at:
        raise ValueError(record["n"])
    return record


@data_register("data.node_state_tests", _concurrency_mode="single")
def no_threes(record: dict) -> dict:
    if record["n"] == 3:
        raise ValueError(3)
    return record


@pytest.fixture
def root(tmp_path):
    with config.temporary(data_process_path=tmp_path, data_process_resume=True):
        yield tmp_path / "docs"


def test_a_node_is_not_run_done_or_unfinished(root):
    with pipeline("docs") as ppl:
        ppl.first = data.node_state_tests.no_threes()
        ppl.second = data.node_state_tests.keep(stop_at=2)
        ppl.third = data.node_state_tests.keep()
        ppl.fourth = data.node_state_tests.keep(_save_data=False)
    assert set(node_states(ppl.graph, root).values()) == {"not run", "not saved"}

    with pytest.raises(RecordError):
        ppl(ROWS)

    assert node_states(ppl.graph, root) == {
        "first": "done, 4 rows, 1 failed",
        "second": "unfinished, 2 of 4 records",
        "third": "not run",
        "fourth": "not saved",
    }


def test_a_folder_that_cannot_be_read_is_said(root):
    with pipeline("docs") as ppl:
        ppl.first = data.node_state_tests.keep()
    ppl(ROWS)
    (root / "first" / "checkpoints" / "1" / "journal").mkdir(parents=True)

    assert node_states(ppl.graph, root)["first"].startswith("unreadable: ")
