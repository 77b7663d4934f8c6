"""A sample of the campaign against the ranks of loaders and their workers."""

import sys
from pathlib import Path

import pytest

from tests.faults.loader_campaign import run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]


def test_ranks_and_workers_that_are_killed_or_suspended_lose_and_move_nothing(
    tmp_path: Path,
) -> None:
    found = run(40, 3, tmp_path)
    assert found["killed"]
    assert found["suspended"]
