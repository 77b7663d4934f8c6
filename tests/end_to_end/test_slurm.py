"""Tests of `examples/slurm`: arrays of a stand-in for Slurm that runs processes."""

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dagster_dataops import RunReport
from dagster_dataops.errors import RecordError
from tests.end_to_end import slurm_stand_in as slurm
from tests.end_to_end.slurm_operator import works
from tests.execution.helpers import Listener, node, run, write_input
from tests.faults.crashing import wait_until
from tests.nodes import ResumePolicy
from tests.registries import concurrency_modes

FOLDER = Path(__file__).parents[2] / "examples" / "slurm"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Register the workplace with a stand-in for Slurm; yield its module."""
    modes = dict(concurrency_modes._MODES)
    bin_folder = slurm.install(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.syspath_prepend(str(FOLDER))
    module = importlib.import_module("slurm_array")
    slurm_array = module.SlurmArray(
        tmp_path / "shared", task_bytes=3000, poll_seconds=0.1, note_seconds=0.5
    )
    concurrency_modes.register_workplace("slurm", slurm_array, default_workers=3)
    yield module
    concurrency_modes._MODES.clear()
    concurrency_modes._MODES.update(modes)


def _input(tmp_path: Path, count: int = 150, **kinds: str) -> Any:
    records = [{"n": n, "do": kinds.get(f"n{n}", "keep"), "text": "é" * 20} for n in range(count)]
    return write_input(tmp_path / "input.jsonl", records)


def _both(tmp_path: Path, dataset: Any, listener: Listener | None = None, **options: Any) -> Any:
    """Run as an array and in this process; compare result and error file."""
    away = run(
        works(_concurrency_mode="slurm", **options),
        dataset,
        node(tmp_path / "away"),
        progress=listener or Listener(),
    )
    return _compared(tmp_path, dataset, away)


def _compared(tmp_path: Path, dataset: Any, away: RunReport) -> RunReport:
    home = node(tmp_path / "home")
    run(works(_concurrency_mode="single", flag=os.devnull), dataset, home)
    there = node(tmp_path / "away")
    assert there.result.read_bytes() == home.result.read_bytes()
    assert there.errors.exists() == home.errors.exists()
    assert not home.errors.exists() or there.errors.read_bytes() == home.errors.read_bytes()
    assert not list((tmp_path / "shared").iterdir())  # nothing is left of the tasks
    return away


class _When(Listener):
    """Calls a function once, in another thread, when a task works and some records are settled."""

    def __init__(self, records: int, action: Callable[[], None]) -> None:
        super().__init__()
        self._records = records
        self._thread = threading.Thread(target=action)
        self._acted = False

    def update(self, state: Any) -> None:
        super().update(state)
        if state.records >= self._records and not self._acted:
            self._acted = True
            self._thread.start()


def _running(folder: Path) -> dict[str, int]:
    return {name: pid for name, (state, pid) in slurm.tasks(folder).items() if state == "RUNNING"}


def test_the_result_and_the_error_file_are_those_of_single_mode(tmp_path: Path, place: Any) -> None:
    dataset = _input(tmp_path, n5="fail", n120="fail")
    report = _both(tmp_path, dataset)
    assert report.manifest.failed == 2
    assert len(slurm.tasks(tmp_path / "slurm")) > 3


def test_a_killed_task_is_done_again_from_its_last_record_on(tmp_path: Path, place: Any) -> None:
    folder = tmp_path / "slurm"

    def kill() -> None:
        os.killpg(next(iter(_running(folder).values())), signal.SIGKILL)

    listener = _When(20, kill)
    _both(tmp_path, _input(tmp_path), listener, seconds=0.05)
    assert any("a task ended (FAILED) at byte" in note for note in listener.notes)


def test_a_cancelled_task_is_done_again(tmp_path: Path, place: Any) -> None:
    folder = tmp_path / "slurm"
    listener = _When(20, lambda: slurm.scancel(folder, [next(iter(_running(folder)))]))
    _both(tmp_path, _input(tmp_path), listener, seconds=0.05)
    assert any("a task ended (CANCELLED)" in note for note in listener.notes)


def test_a_cancelled_array_ends_the_run(tmp_path: Path, place: Any) -> None:
    # No task can finish before it is cancelled: each range has a record that waits for the flag.
    dataset = _input(tmp_path, **{f"n{n}": "wait" for n in range(20, 150, 20)})
    flag, folder, away = tmp_path / "flag", tmp_path / "slurm", node(tmp_path / "away")
    operator = works(_concurrency_mode="slurm", seconds=0.1, flag=str(flag))

    def cancel() -> None:
        for job in {name.partition("_")[0] for name in slurm.tasks(folder)}:
            slurm.scancel(folder, [job])

    with pytest.raises(place.SlurmError, match="the tasks were cancelled; run again to continue"):
        run(operator, dataset, away, progress=_When(5, cancel))
    flag.touch()
    again = Listener()
    report = run(operator, dataset, away, progress=again, resume=ResumePolicy.AUTO)
    assert any("resuming" in note for note in again.notes)
    _compared(tmp_path, dataset, report)


def test_a_record_that_kills_its_task_once_costs_nothing_and_else_ends_the_run_by_name(
    tmp_path: Path, place: Any
) -> None:
    dataset = _input(tmp_path, n100="die")
    _both(tmp_path, dataset, flag=str(tmp_path / "flag"))
    with pytest.raises(
        place.SlurmError,
        match=r"ended \(FAILED\) at byte \d+ of .*, the last of 3 there that .*\. Its log:",
    ):
        run(works(_concurrency_mode="slurm"), dataset, node(tmp_path / "other"))


def test_tasks_that_never_start_end_the_run_without_a_log(tmp_path: Path, place: Any) -> None:
    (tmp_path / "slurm" / "broken").touch()
    with pytest.raises(place.SlurmError, match=r"ended \(NODE_FAIL\) at byte 0 .* It has no log"):
        run(works(_concurrency_mode="slurm"), _input(tmp_path), node(tmp_path))


def test_an_error_of_a_record_that_is_not_ignored_is_that_of_any_mode(
    tmp_path: Path, place: Any
) -> None:
    dataset = _input(tmp_path, n100="fail")
    operator = works(_concurrency_mode="slurm", _ignore_errors=False)
    with pytest.raises(RecordError, match="record 100") as caught:
        run(operator, dataset, node(tmp_path))
    assert caught.value.index == 100


def test_a_queue_that_does_not_start_is_told_again_and_again(tmp_path: Path, place: Any) -> None:
    hold = tmp_path / "slurm" / "hold"
    hold.touch()
    listener = Listener()
    note = listener.note

    def release(text: str) -> None:
        note(text)
        if sum("waiting for the first of" in one for one in listener.notes) == 2:
            hold.unlink(missing_ok=True)

    listener.note = release  # type: ignore[method-assign]
    _both(tmp_path, _input(tmp_path), listener)
    assert any("array tasks; Slurm says: Priority" in one for one in listener.notes)


def test_a_killed_head_resumes_and_ends_the_tasks_that_it_has_left(
    tmp_path: Path, place: Any
) -> None:
    dataset, folder = _input(tmp_path, 400), tmp_path / "slurm"
    script = f"""
        from pathlib import Path
        from dagster_dataops import JsonlDataset, register_workplace
        from slurm_array import SlurmArray
        from tests.end_to_end.slurm_operator import works
        from tests.execution.helpers import node, run
        place = SlurmArray({str(tmp_path / "shared")!r}, task_bytes=2000, poll_seconds=0.1)
        register_workplace("slurm", place, default_workers=3)
        operator = works(_concurrency_mode="slurm", seconds=0.02)
        dataset = JsonlDataset.of_file(Path({str(dataset.location)!r}))
        run(operator, dataset, node(Path({str(tmp_path / "away")!r})))
    """
    paths = os.pathsep.join([str(Path(__file__).parents[2]), str(FOLDER)])
    head = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], env={**os.environ, "PYTHONPATH": paths}
    )
    done = lambda: sum(state == "COMPLETED" for state, _ in slurm.tasks(folder).values())  # noqa: E731
    wait_until(lambda: done() >= 2, 300, "two tasks have ended")
    head.kill()
    head.wait()
    left = _running(folder)
    assert left

    listener = Listener()
    operator = works(_concurrency_mode="slurm", seconds=0.02)
    resume = ResumePolicy.AUTO
    away = run(operator, dataset, node(tmp_path / "away"), progress=listener, resume=resume)

    assert any("resuming" in note for note in listener.notes)
    wait_until(lambda: not any(map(psutil.pid_exists, left.values())), 20, "they have ended")
    for shared in (tmp_path / "shared").iterdir():  # of the killed head
        assert shared.name.startswith("dataops-")
    assert away.manifest.rows_in == 400
    home = node(tmp_path / "home")
    run(works(_concurrency_mode="single"), dataset, home)
    assert node(tmp_path / "away").result.read_bytes() == home.result.read_bytes()
