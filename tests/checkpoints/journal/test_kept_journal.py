"""Tests of dagster_dataops.checkpoints.journal.kept_journal."""

from pathlib import Path

import pytest

from dagster_dataops.checkpoints.journal.kept_journal import KeptJournal


def test_a_journal_that_was_not_finished_is_removed(tmp_path: Path) -> None:
    (tmp_path / "input.jsonl").write_bytes(b"{}\n")
    path = tmp_path / "journal"
    with (tmp_path / "input.jsonl").open("rb") as source:
        with (
            pytest.raises(KeyboardInterrupt),
            KeptJournal(path, source.fileno(), check_input=False),
        ):
            assert path.exists()
            raise KeyboardInterrupt
        assert not path.exists()
        with KeptJournal(path, source.fileno(), check_input=False) as keeping:
            keeping.finish({}, {})
    assert path.exists()
