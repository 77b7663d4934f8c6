"""Tests of temporary files of one step: other steps keep theirs, and no file is left behind."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import dagster as dg
import pytest

from dagster_dataops.assets.inputs.step_inputs import StepInputs, StepScratch
from dagster_dataops.checkpoints.folder.manifest import NodeFolder

LONG_AGO = 3600.0  # seconds


@pytest.fixture
def folder(tmp_path: Path) -> NodeFolder:
    return NodeFolder(tmp_path / "docs" / "upper", "upper")


def spilled(folder: NodeFolder) -> list[Path]:
    return sorted(folder.path.rglob("*.jsonl"))


def age(folder: NodeFolder) -> None:
    """Make all files look old."""
    then = time.time() - LONG_AGO
    for path in folder.path.iterdir():
        os.utime(path, (then, then))


def upstream(folder: NodeFolder, *texts: str) -> StepInputs:
    made = StepInputs(folder, 1, "a run")
    made.add(dg.AssetKey("texts"), [[{"text": text} for text in texts]])
    return made


def test_two_concurrent_steps_have_separate_files(folder: NodeFolder) -> None:
    with upstream(folder, "one") as orphan:
        age(folder)
        with upstream(folder, "two", "three") as attempt:
            assert [row["text"] for row in orphan.datasets[0].read()] == ["one"]
            assert [row["text"] for row in attempt.datasets[0].read()] == ["two", "three"]
        assert [row["text"] for row in orphan.datasets[0].read()] == ["one"]
    assert list(folder.path.iterdir()) == []


def test_nothing_is_left_when_the_step_fails(folder: NodeFolder) -> None:
    with pytest.raises(RuntimeError), upstream(folder, "one"):
        assert len(spilled(folder)) == 1
        raise RuntimeError
    assert list(folder.path.iterdir()) == []


def test_without_spilled_data_no_file_is_created(folder: NodeFolder) -> None:
    with StepInputs(folder, 1, "a run"):
        pass
    assert not folder.path.exists()


def _spill_and_die(folder: NodeFolder) -> None:
    upstream(folder, "lost")
    os.kill(os.getpid(), signal.SIGKILL)


def test_files_of_a_killed_step_are_deleted_by_a_later_step(folder: NodeFolder) -> None:
    killed = multiprocessing.get_context("spawn").Process(target=_spill_and_die, args=(folder,))
    killed.start()
    killed.join(60)
    assert killed.exitcode == -signal.SIGKILL
    (left,) = spilled(folder)

    for young in (True, False):
        if not young:
            age(folder)
        spills = StepScratch(folder, "the next")
        spills.place()
        assert left.exists() is young
        spills.delete()
    assert list(folder.path.iterdir()) == []
