"""Tests of worker processes of a parent with many threads."""

from pathlib import Path

import pytest

from tests.faults.forking import run_often


@pytest.mark.slow
def test_runs_from_a_parent_with_busy_threads_end(tmp_path: Path) -> None:
    run_often(20, seed=3, folder=tmp_path, workers=1)
