"""Tests of the roots in which this process looks for files that operators made."""

from pathlib import Path

from dagster_dataops import config
from dagster_dataops.datasets.file_values.result_roots import roots, use_root, use_roots_above
from dagster_dataops.foundation.places.bucket import BucketFile, StoreBucket
from dagster_dataops.foundation.places.root import Root
from tests.execution.helpers import node, operator_for, run, write_input


def test_the_roots_that_were_used_last_are_known_and_no_others(tmp_path: Path) -> None:
    for number in range(1000):
        use_root(Root(tmp_path / str(number)))

    with config.temporary(data_process_path=tmp_path / "999"):
        found = [int(root.path.name) for root in roots()]
    assert found == list(range(999, 999 - len(found), -1))
    assert len(found) < 100


def test_a_root_that_is_used_again_stays_known(tmp_path: Path) -> None:
    (tmp_path / "first" / "files").mkdir(parents=True)
    for number in range(1000):
        use_roots_above(tmp_path / "first" / "node" / "node_results.jsonl")
        use_root(Root(tmp_path / str(number)))

    assert Root(tmp_path / "first") in roots()


def test_the_root_of_a_run_is_searched_before_those_of_its_inputs(tmp_path: Path) -> None:
    (tmp_path / "inputs" / "files").mkdir(parents=True)
    inputs = write_input(tmp_path / "inputs" / "a" / "a.jsonl", [{"kind": "dict"}])
    run(operator_for("single", 1), inputs, node(tmp_path, "b"), root=str(tmp_path / "root"))

    first, *others = (Path(root.path) for root in roots())
    assert first == tmp_path / "root"
    assert tmp_path / "inputs" in others


def test_each_prefix_of_a_result_in_a_bucket_may_be_a_root(tmp_path: Path) -> None:
    bucket = StoreBucket("s3://b", tmp_path, {})
    use_roots_above(BucketFile(bucket, "root/node/.versions/1/node_results.jsonl"))

    assert {Root(tmp_path, bucket), Root(tmp_path / "root", bucket)} <= set(roots())
