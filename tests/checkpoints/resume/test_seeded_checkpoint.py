"""Tests of dagster_dataops.checkpoints.resume.seeded_checkpoint."""

from pathlib import Path

from dagster_dataops.checkpoints.resume.seeded_checkpoint import seeded_by_result
from tests.execution.helpers import node


def test_a_new_checkpoint_removes_those_whose_making_was_cut_short(tmp_path: Path) -> None:
    folder = node(tmp_path)
    for name in ("1", "2"):
        (folder.checkpoints / name).mkdir(parents=True)
        (folder.checkpoints / name / "segment-00001.jsonl").write_bytes(b"{}\n")
    (folder.checkpoints / "2" / "journal").touch()
    folder.result.write_bytes(b"{}\n")
    folder.kept.touch()
    new = seeded_by_result(folder).folder
    assert sorted(folder.checkpoints.iterdir()) == [folder.checkpoints / "2", new]
