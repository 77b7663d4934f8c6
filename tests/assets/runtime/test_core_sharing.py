"""Tests of steps that run at the same time and share the cores."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops.assets.runtime.core_sharing import fair_settings, running_step
from tests.assets.helpers import Records, definitions_of, execute, pipeline_of, read_jsonl
from tests.nodes import ExecutionSettings
from tests.registries import OperatorRegistry
from tests.subprocesses import killed_at_exit


@pytest.fixture(autouse=True)
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary folder of the test, on a machine of eight cores."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    return tmp_path / "temporary" / f"dagster-dataops-steps-{os.getuid()}"


@pytest.fixture
def slow(registry: OperatorRegistry, tmp_path: Path) -> Any:
    @registry("data.text")
    def slow(record: dict, folder: str = str(tmp_path)) -> dict:
        time.sleep(0.02)
        (Path(folder) / f"worker-{os.getpid()}").touch()
        return record

    return slow


def test_a_single_step_has_all_cores_and_several_steps_share_them(slow: Any) -> None:
    found = []
    with ExitStack() as stack:
        for _ in range(10):
            fair = stack.enter_context(fair_settings(slow(), ExecutionSettings()))
            found.append(fair.max_workers)
    assert found == [8, 4, 2, 2, 1, 1, 1, 1, 1, 1]
    with fair_settings(slow(), ExecutionSettings()) as fair:
        assert fair.max_workers == 8


@pytest.mark.parametrize(
    "settings",
    [
        ExecutionSettings(max_workers=6),
        ExecutionSettings(concurrency_mode="thread"),
        ExecutionSettings(concurrency_mode="single"),
    ],
    ids=lambda settings: f"{settings.concurrency_mode}-{settings.max_workers}",
)
def test_settings_of_chosen_workers_and_waiting_operators_are_unchanged(
    settings: ExecutionSettings, slow: Any, steps: Path
) -> None:
    with running_step(), fair_settings(slow(), settings) as fair:
        assert fair is settings
        assert len(list(steps.iterdir())) == 1


def test_a_killed_step_does_not_count(steps: Path) -> None:
    code = f"""
import tempfile, time
tempfile.tempdir = {str(steps.parent)!r}
from dagster_dataops.assets.runtime.core_sharing import running_step
with running_step() as running:
    print(running, flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", code]
    with killed_at_exit(subprocess.Popen(command, stdout=subprocess.PIPE)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        with running_step() as running:
            assert running == 2
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(list(steps.iterdir())) == 1
    with running_step() as running:
        assert running == 1
        assert len(list(steps.iterdir())) == 1
    assert not list(steps.iterdir())


def test_without_a_folder_to_write_to_every_step_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with running_step() as running:
        assert running == 1


def plant_link(steps: Path) -> Path:
    (steps.parent / "elsewhere").mkdir()
    steps.symlink_to(steps.parent / "elsewhere")
    return steps.parent / "elsewhere"


def plant_open_folder(steps: Path) -> Path:
    steps.mkdir()
    steps.chmod(0o777)
    return steps


def plant_folder_of_another_user(steps: Path) -> Path:
    if os.getuid():
        pytest.skip("only root can make a folder of another user")
    steps.mkdir(mode=0o700)
    os.chown(steps, 65534, 65534)
    return steps


@pytest.mark.parametrize("plant", [plant_link, plant_open_folder, plant_folder_of_another_user])
def test_a_folder_of_another_user_is_not_used_with_a_log_line(
    plant: Callable[[Path], Path], steps: Path, caplog: pytest.LogCaptureFixture
) -> None:
    planted = plant(steps)
    victim = steps.parent / "victim"
    victim.write_text("kept")
    (planted / "1victim").symlink_to(victim)
    with running_step() as running:
        assert running == 1
        assert os.listdir(planted) == ["1victim"]  # noqa: PTH208 - the names are what counts
    assert f"{steps} cannot be used: it " in caplog.text


def test_a_link_among_the_lock_files_is_not_followed(steps: Path) -> None:
    victim = steps.parent / "victim"
    victim.write_text("kept")
    with running_step():
        (steps / "1victim").symlink_to(victim)
        with running_step() as running:
            assert running == 1 + 1
        assert (steps / "1victim").is_symlink()


@pytest.mark.slow
@pytest.mark.parametrize(("others", "workers"), [(0, 8), (1, 4), (3, 2)])
def test_a_step_starts_no_more_workers_than_its_share(
    others: int,
    workers: int,
    slow: Any,
    records: Records,
    root: Path,
    instance: dg.DagsterInstance,
    tmp_path: Path,
) -> None:
    definitions = definitions_of(pipeline_of(slow=slow()), records(400), root)
    with ExitStack() as stack:
        for _ in range(others):
            stack.enter_context(running_step())
        execute(definitions, instance)
    assert len(read_jsonl(root / "docs" / "slow" / "slow_results.jsonl")) == 400
    started = len(list(tmp_path.glob("worker-*")))
    assert 1 < started <= workers
    if others:
        assert started == workers
