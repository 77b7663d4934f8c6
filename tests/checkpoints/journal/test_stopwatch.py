"""How long attempts were at work is known afterwards, and what going on from there saves."""

import struct
import types
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import Operational
from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.manifest import Manifest
from dagster_dataops.checkpoints.journal import stopwatch
from dagster_dataops.checkpoints.journal.frames import (
    FrameKind,
    clock_frame,
    frame,
    json_frame,
    read_clock,
    read_frames,
)
from dagster_dataops.checkpoints.journal.stopwatch import Stopwatch
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.datasets.dataset import JsonlDataset
from dagster_dataops.execution.run_report import RunReport
from dagster_dataops.operators.registry import OperatorRegistry
from tests.execution.helpers import TINY, cut_by, node, run, write_input

_RECORDS = [{"n": n} for n in range(20)]
_SWITCH = types.SimpleNamespace(stop_at=None)


class Clock(Operational):
    """Seconds that only a test lets pass."""

    now = 5000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stopwatch, "time", clock)
    return clock


def test_days_of_work_are_known_to_a_hundredth_from_few_frames(clock: Clock) -> None:
    watch = Stopwatch(0.0)
    frames, known = 0, 0.0
    for second in range(1, 3 * 24 * 3600, 7):
        clock.now = 5000.0 + second
        for found in read_frames(watch.settled()):
            frames += 1
            known = read_clock(found.payload) or 0.0
        assert known <= second <= known * 1.02 + 1
    assert frames < 1500


def test_a_time_that_nobody_can_have_worked_is_none() -> None:
    for payload in (b"", b"1234567", struct.pack("<d", -1.0), struct.pack("<d", float("nan"))):
        assert read_clock(payload) is None
    assert read_clock(struct.pack("<d", float("inf"))) is None


def _operator(clock: Clock) -> Any:
    """Each record takes ten seconds; at one the run is interrupted, and ten more are lost."""

    @OperatorRegistry(print)("data.watched", _concurrency_mode="single")
    def ten_seconds(record: dict) -> None:
        clock.now += 10
        if record["n"] == _SWITCH.stop_at:
            raise KeyboardInterrupt

    return ten_seconds()


def _run(clock: Clock, path: Path, name: str, **context: Any) -> RunReport:
    if not (path / "input.jsonl").exists():
        write_input(path / "input.jsonl", _RECORDS)
    dataset = JsonlDataset.of_file(path / "input.jsonl")
    context = {"run": name, "resume": ResumePolicy.AUTO, **context}
    with pytest.MonkeyPatch.context() as patch:
        cut_by(patch, TINY)
        return run(_operator(clock), dataset, node(path), **context)


def _interrupt(clock: Clock, path: Path, name: str, stop_at: int) -> None:
    _SWITCH.stop_at = stop_at
    with pytest.raises(KeyboardInterrupt):
        _run(clock, path, name)
    _SWITCH.stop_at = None


def test_a_resumed_run_says_how_much_work_it_saved_and_of_whom(
    tmp_path: Path, clock: Clock
) -> None:
    _interrupt(clock, tmp_path, "first", 12)
    _interrupt(clock, tmp_path, "second", 18)
    clock.now += 100_000  # until somebody goes on
    report = _run(clock, tmp_path, "third")
    note = "resuming: 18 records settled by run second and 1 before it; 3 min 00 s of work saved"
    assert report.notes == (note,)
    assert report.manifest.resumed_from == ["first", "second"]
    assert report.manifest.seconds_saved == 180
    assert (report.rows_resumed, report.seconds_saved) == (18, 180)


def test_a_run_that_resumes_nothing_saved_nothing(tmp_path: Path, clock: Clock) -> None:
    manifest = _run(clock, tmp_path, "first").manifest
    assert (manifest.resumed, manifest.resumed_from, manifest.seconds_saved) == (0, [], 0)


def test_a_finished_result_saves_all_that_it_took(tmp_path: Path, clock: Clock) -> None:
    _interrupt(clock, tmp_path, "first", 12)
    made = _run(clock, tmp_path, "second").manifest
    report = _run(clock, tmp_path, "third", reuse_finished=True)
    assert (report.rows_resumed, report.resumed_from) == (20, ("second",))
    assert report.seconds_saved == made.seconds + 120
    assert report.notes[0].endswith("code and input; 2 min 00 s of work saved")


def test_a_retry_of_failed_records_saves_the_work_on_the_others(
    tmp_path: Path, clock: Clock
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", _RECORDS)
    calls: list[int] = []

    def failing(times: int) -> Any:
        @OperatorRegistry(print)("data.watched", _concurrency_mode="single")
        def ten_seconds(record: dict) -> None:
            clock.now += 10
            calls.append(record["n"])
            if record["n"] == 7 and calls.count(7) <= times:
                raise ValueError

        return ten_seconds()

    run(failing(1), dataset, node(tmp_path), run="first")
    retry = ResumePolicy.FAILED_RECORDS
    report = run(failing(1), dataset, node(tmp_path), run="second", resume=retry)
    assert len(calls) == 21
    assert (report.rows_resumed, report.resumed_from) == (19, ("first",))
    assert report.seconds_saved == 200
    assert report.notes[0].endswith("; 3 min 20 s of work saved")


def test_a_checkpoint_of_an_older_version_is_read_and_says_nothing_of_time(
    tmp_path: Path, clock: Clock
) -> None:
    _interrupt(clock, tmp_path, "first", 12)
    journal = next(node(tmp_path).checkpoints.glob("*/journal"))
    older = b""
    for found in read_frames(journal.read_bytes()):
        if found.kind == FrameKind.ATTEMPT:
            attempt = orjson.loads(found.payload)
            del attempt["seconds"]
            older += json_frame(FrameKind.ATTEMPT, attempt)
        elif found.kind != FrameKind.CLOCK:
            older += frame(FrameKind(found.kind), found.payload)
    journal.write_bytes(older)
    report = _run(clock, tmp_path, "second")
    assert report.notes == ("resuming: 12 records settled by run first",)
    assert (report.manifest.resumed, report.seconds_saved) == (12, 0)


def test_damaged_clocks_cost_nothing_but_the_time(tmp_path: Path, clock: Clock) -> None:
    _interrupt(clock, tmp_path, "first", 12)
    journal = next(node(tmp_path).checkpoints.glob("*/journal"))
    with journal.open("ab") as file:
        file.write(frame(FrameKind.CLOCK, b"soon"))
    content = CheckpointContent.read(journal.parent)
    assert (content.table.records, content.seconds) == (12, 0)
    with journal.open("ab") as file:
        file.write(clock_frame(119.0))
    assert CheckpointContent.read(journal.parent).seconds == 119


def test_a_manifest_of_an_older_version_is_read(tmp_path: Path, clock: Clock) -> None:
    _run(clock, tmp_path, "first")
    path = node(tmp_path).manifest
    content = orjson.loads(path.read_bytes())
    del content["resumed_from"], content["seconds_saved"]
    path.write_bytes(orjson.dumps(content))
    manifest = Manifest.load(path)
    assert manifest is not None
    assert (manifest.resumed_from, manifest.seconds_saved) == ([], 0)
