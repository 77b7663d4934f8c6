import os
from pathlib import Path

import pytest

from dagster_dataops.checkpoints.journal import journal_writer
from dagster_dataops.errors import StorageError
from tests.journals import FrameKind, JournalWriter, Span, SpansEntry, frame, spans_frame

_SPANS = [Span(n * 10, 10, 1, 1, 0, 0, 5, 0, n, n) for n in range(12)]
_FRAMES = [
    frame(FrameKind.ATTEMPT, b'{"run":"one"}'),
    spans_frame(SpansEntry.of(1, 0, _SPANS[:3])),
    spans_frame(SpansEntry.of(2, 77, _SPANS)),
]


def test_appending_starts_where_another_writer_ended(tmp_path: Path) -> None:
    for item in _FRAMES:
        journal = JournalWriter(tmp_path / "journal")
        journal.append(item)
        journal.sync()
        journal.close()
        journal.close()
    assert (tmp_path / "journal").read_bytes() == b"".join(_FRAMES)


def test_a_failed_write_leaves_no_half_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = JournalWriter(tmp_path / "journal")
    journal.append(_FRAMES[0])

    def half(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
        patch.setattr(journal_writer, "write_all", half)
        journal.append(_FRAMES[2])
    journal.append(_FRAMES[1])
    journal.close()
    assert (tmp_path / "journal").read_bytes() == _FRAMES[0] + _FRAMES[1]


def test_a_journal_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="open the journal"):
        JournalWriter(tmp_path / "missing" / "journal")
