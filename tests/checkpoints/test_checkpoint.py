import time
from pathlib import Path

import pytest

from dagster_dataops.errors import StorageError
from tests.journals import FORMAT, Checkpoint, RunFingerprint, Span, SpansEntry, checksum, fresh
from tests.nodes import background, existing

_FINGERPRINT = RunFingerprint(FORMAT, "a.b", "options", "code", "input")


def _span(start: int, data: bytes) -> Span:
    return Span(start, 10, 1, 1, 0, 0, len(data), 0, 0, checksum(data))


def _checkpoint(folder: Path, run_name: str = "one") -> Checkpoint:
    content = next(iter(existing(folder)), fresh(folder))
    return Checkpoint(content, _FINGERPRINT, run_name, 1.0)


def test_settled_records_are_present_after_reopening(tmp_path: Path) -> None:
    first = _checkpoint(tmp_path)
    segment = first.new_segment()
    for start in (20, 0):
        first.journal(
            SpansEntry.of(segment.number, segment.append(b"line\n"), [_span(start, b"line\n")])
        )
    segment.close()
    first.close()
    content = existing(tmp_path)[0]
    assert content.attempts == ["one"]
    assert content.fingerprint == _FINGERPRINT
    assert [item.start for item, _, _ in content.table.ordered()] == [0, 20]
    assert content.table.records == 2


def test_every_attempt_writes_new_segments(tmp_path: Path) -> None:
    numbers = []
    for attempt in ("one", "two", "three"):
        checkpoint = _checkpoint(tmp_path, attempt)
        segment = checkpoint.new_segment()
        numbers.append(segment.number)
        segment.close()
        checkpoint.close()
    assert numbers == [1, 2, 3]
    assert existing(tmp_path)[0].attempts == ["one", "two", "three"]


def test_numbers_for_another_machine_are_never_given_again(tmp_path: Path) -> None:
    given: list[int] = []
    for attempt in ("one", "two"):
        checkpoint = _checkpoint(tmp_path, attempt)
        given.append(checkpoint.take_segment_number())
        for _ in range(2):
            given += checkpoint.take_segment_numbers(100)
        checkpoint.close()
    assert len(given) == len(set(given)) == 2 * (99 + 99 + 1)


def test_a_segment_never_has_the_number_of_one_that_is_there(tmp_path: Path) -> None:
    """Some numbers are missing: of workers that were killed before they wrote anything."""
    first = _checkpoint(tmp_path)
    first.take_segment_number()
    first.new_segment().close()
    first.take_segment_number()
    last = first.new_segment()
    last.close()
    first.close()
    assert len(list(first.folder.glob("segment-*"))) == 2
    second = _checkpoint(tmp_path, "two")
    assert second.take_segment_number() == last.number + 1
    second.close()


def test_a_folder_without_a_journal_is_an_empty_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    content = existing(tmp_path)[0]
    assert (content.fingerprint, content.table.records) == (None, 0)


def test_checkpoints_are_listed_newest_first(tmp_path: Path) -> None:
    for name in ("1", "10", "9", "other"):
        (tmp_path / name).mkdir()
    assert [content.folder.name for content in existing(tmp_path)] == ["10", "9", "1"]
    assert fresh(tmp_path).folder.name == "11"


def test_no_folder_holds_no_checkpoints(tmp_path: Path) -> None:
    assert existing(tmp_path / "missing") == []
    assert fresh(tmp_path / "missing").folder.name == "1"


def test_rejected_spans_are_open_again(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path)
    checkpoint.journal(SpansEntry.of(1, 0, [_span(0, b""), _span(10, b"")]))
    checkpoint.reject([0])
    assert [item.start for item, _, _ in checkpoint.table.ordered()] == [10]
    checkpoint.close()


def test_syncing_waits_its_turn(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path)
    segment = checkpoint.new_segment()
    synced: list[float] = []
    checkpoint.sync = lambda: synced.append(1)  # type: ignore[method-assign]
    now = time.monotonic()
    checkpoint.sync_if_due(now)
    assert not synced  # nothing to sync
    checkpoint.journal(SpansEntry.of(segment.number, 0, [_span(0, b"")]))
    for later in (1.0, 1.5, 2.5):
        checkpoint.sync_if_due(now + later)
        background.finish()
    assert len(synced) == 2
    segment.close()
    checkpoint.close()


def test_a_failed_background_sync_ends_the_run(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path)
    checkpoint.journal(SpansEntry.of(99, 0, [_span(0, b"")]))
    now = time.monotonic()
    checkpoint.sync_if_due(now)
    checkpoint.sync_if_due(now + 2)
    background.finish()
    checkpoint.journal(SpansEntry.of(99, 0, [_span(10, b"")]))
    with pytest.raises(StorageError, match="cannot sync"):
        checkpoint.sync_if_due(now + 4)
    checkpoint.close()


def test_syncing_a_missing_segment_is_a_storage_error(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path)
    checkpoint.journal(SpansEntry.of(99, 0, [_span(0, b"")]))
    with pytest.raises(StorageError, match="cannot sync"):
        checkpoint.sync()
    checkpoint.close()
