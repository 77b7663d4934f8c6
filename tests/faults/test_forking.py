"""Worker processes of a parent with many threads."""

from pathlib import Path

import pytest

from dagster_dataops.concurrency.fork_safety import may_fork
from tests.faults.crashing import wait_until
from tests.faults.forking import busy_threads, run_often


@pytest.mark.slow
def test_runs_from_a_parent_with_busy_threads_end(tmp_path: Path) -> None:
    run_often(20, seed=3, folder=tmp_path, workers=1)


def test_a_parent_with_busy_threads_is_never_forked(tmp_path: Path) -> None:
    wait_until(may_fork, 10, "the threads of earlier tests are gone")
    with busy_threads():
        assert not may_fork()
    wait_until(may_fork, 10, "the kernel has forgotten the threads")
