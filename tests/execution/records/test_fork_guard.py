from pathlib import Path

import pytest

from dagster_dataops.execution.records.fork_guard import ForkGuard
from tests.faults.crashing import in_child


def test_the_process_itself_continues() -> None:
    ForkGuard().check()


def test_a_forked_copy_ends_at_once_with_a_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    guard = ForkGuard()

    def go_on() -> None:
        guard.check()
        (tmp_path / "went on").touch()

    assert in_child(go_on) == 1
    assert not list(tmp_path.iterdir())
    assert "returned from the operator's call" in capfd.readouterr().err
