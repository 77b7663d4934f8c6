"""Tests of dagster_dataops.checkpoints.journal.kept_journal."""

import os
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


def test_a_finished_journal_survives_a_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that is written to it is synced: its size is that of the last sync."""
    (tmp_path / "input.jsonl").write_bytes(b"{}\n")
    path = tmp_path / "journal"
    synced: list[tuple[int, int]] = []

    def sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size))

    monkeypatch.setattr(os, "fdatasync", sync)
    with (
        (tmp_path / "input.jsonl").open("rb") as source,
        KeptJournal(path, source.fileno(), check_input=False) as keeping,
    ):
        keeping.finish({}, {})
    assert synced[-1:] == [(path.stat().st_ino, path.stat().st_size)]
