"""Tests of clocks that jump by hours: only the monotonic clock is used for decisions."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagster_dataops.errors import FolderLockedError
from tests.execution.helpers import (
    MODES,
    SMALL,
    cut_by,
    expected_results,
    node,
    operator_for,
    plan,
    run,
    run_over,
    write_input,
)
from tests.nodes import FolderLock, ResumePolicy, published

_HOUR = 3600.0


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> Iterator[random.Random]:
    """Make every reading of the wall clock jump by hours."""
    chance = random.Random(5)
    real, real_ns = time.time, time.time_ns

    def away() -> float:
        return chance.uniform(-48, 48) * _HOUR

    monkeypatch.setattr(time, "time", lambda: real() + away())
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(away() * 1e9))
    return chance


@pytest.mark.parametrize("mode", MODES)
def test_a_jumping_clock_changes_nothing(tmp_path: Path, jumping, mode: str) -> None:
    records = plan(["keep", "expand", "fail", "drop"] * 20)
    with pytest.MonkeyPatch.context() as patch:
        cut_by(patch, SMALL)
        report = run_over(tmp_path, operator_for(mode, 2), records, run="first", flush_seconds=0.01)
    assert node(tmp_path).result.read_bytes() == expected_results(records)
    assert 0 <= report.seconds < _HOUR
    assert 0 <= report.manifest.seconds < _HOUR


_TIMES = {"1901": -2_177_452_800, "1970": 0, "1969": -1, "2200": 7_258_118_400}


@pytest.mark.parametrize("year", _TIMES)
def test_files_of_any_time_are_resumed_and_reused(tmp_path: Path, jumping, year: str) -> None:
    """The input's time, and that of a checkpoint and a result made while the clock was wrong."""
    records = plan(["keep", "expand", "drop"] * 10)
    dataset = write_input(tmp_path / "input.jsonl", records)
    moment = _TIMES[year]
    os.utime(dataset.path, (moment, moment))
    operator = operator_for("single", 1)

    def stop() -> str | None:
        return "told to" if (node(tmp_path).checkpoints / "1").exists() else None

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Exception, match="told to"):
        cut_by(patch, SMALL)
        run(operator, dataset, node(tmp_path), run="first", should_stop=stop)
    for path in (node(tmp_path).checkpoints / "1").iterdir():
        os.utime(path, (moment, moment))
    report = run(operator, dataset, node(tmp_path), run="second", resume=ResumePolicy.AUTO)
    assert report.manifest.resumed > 0
    assert node(tmp_path).result.read_bytes() == expected_results(records)
    assert published(node(tmp_path)) is not None
    again = run(operator, dataset, node(tmp_path), run="third", reuse_finished=True)
    assert again.reused


def test_waiting_for_a_lock_does_not_look_at_the_wall_clock(tmp_path: Path, jumping) -> None:
    first = FolderLock(tmp_path, "one", 0)
    with pytest.raises(FolderLockedError) as caught:
        FolderLock(tmp_path, "two", 0.1)
    assert 0.1 <= caught.value.waited_seconds < _HOUR
    first.release()
