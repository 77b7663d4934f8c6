from dataclasses import replace
from pathlib import Path

import pytest

from dagster_dataops import load_result
from dagster_dataops.checkpoints.folder.joint_results import check_together
from dagster_dataops.errors import InputError
from dagster_dataops.foundation.places.bucket import CopiedFile, StoreBucket
from tests.execution.helpers import act, node, plan, run, write_input
from tests.execution.splitting import operator_for, splits
from tests.faults.crashing import DyingAfter, in_child
from tests.nodes import commit


def test_results_of_two_runs_of_a_node_are_not_read_together(tmp_path: Path) -> None:
    folder = splits(tmp_path)
    operator = operator_for("single")
    run(operator, write_input(tmp_path / "old.jsonl", plan(["train", "test"])), folder, run="old")
    dataset = write_input(tmp_path / "new.jsonl", plan(["train", "test", "both"]))

    def killed() -> None:
        dying = DyingAfter(commit.write_durably, 1, before=False)
        pytest.MonkeyPatch().setattr(commit, "write_durably", dying)
        run(operator, dataset, folder, run="killed")

    assert in_child(killed) == DyingAfter.STATUS
    mixed = [load_result(place) for place in folder.outputs.values()]
    with pytest.raises(InputError, match="of run old, and .* of run killed"):
        run(act(_concurrency_mode="single"), mixed, node(tmp_path, "both"))
    check_together(mixed[:1])
    bucket = StoreBucket("s3://docs", tmp_path, {})
    copies = [replace(one, location=CopiedFile(bucket, one.path)) for one in mixed]
    with pytest.raises(InputError, match="s3://docs/.* of run old, and s3://docs/.* of run killed"):
        check_together(copies)

    run(operator, dataset, folder, run="next")
    check_together([load_result(place) for place in folder.outputs.values()])


def test_files_without_a_manifest_are_read_together(tmp_path: Path) -> None:
    files = [write_input(tmp_path / name, plan(["keep"])) for name in ("a.jsonl", "b.jsonl")]
    check_together(files)
