"""Tests of the scheduler that distributes the tests of this repository."""

import subprocess
import sys
from pathlib import Path

import pytest

_CONFTEST = """
import pytest
from tests.scheduler import Scheduler


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Scheduler(config, log)
"""
_TESTS = """
import os
import pytest


@pytest.mark.parametrize("number", range(20))
def test_number(number):
    if number == 7 and os.environ["DYING"]:
        os._exit(3)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_numbers.py").write_text(_TESTS)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))

    def run(dying: str) -> "subprocess.CompletedProcess[str]":
        monkeypatch.setenv("DYING", dying)
        options = ("-q", "-n", "2", "--max-worker-restart", "2", "-p", "no:cacheprovider")
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.slow
def test_a_run_in_which_a_process_dies_fails_and_ends(run) -> None:
    ended = run("yes")

    assert ended.returncode != 0, ended.stdout + ended.stderr
    assert "node down" in ended.stdout


@pytest.mark.slow
def test_each_test_runs_once(run) -> None:
    ended = run("")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "20 passed" in ended.stdout
