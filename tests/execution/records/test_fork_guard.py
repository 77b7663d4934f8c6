from pathlib import Path

import pytest

from dagster_dataops.execution.records.fork_guard import Original
from tests.faults.crashing import in_child


def test_the_original_goes_on() -> None:
    Original().end_clone()


def test_a_clone_ends_at_once_and_says_why(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    original = Original()

    def go_on() -> None:
        original.end_clone()
        (tmp_path / "went on").touch()

    assert in_child(go_on) == 1
    assert not list(tmp_path.iterdir())
    assert "came back from the operator's call" in capfd.readouterr().err
