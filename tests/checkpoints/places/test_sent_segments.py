"""Test that segments of a bucket are read where their bytes are: files, objects, or both."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader, outputs
from dagster_dataops.checkpoints.journal.sent_pieces import Piece
from dagster_dataops.checkpoints.places import sent_segments
from dagster_dataops.checkpoints.places.sent_segments import SentSegments
from tests.journals import SegmentWriter, Span, checksum
from tests.object_stores import FakeStore

NAME = "segment-00001.jsonl"
needs_holes = pytest.mark.skipif(
    not hasattr(os, "posix_fallocate"), reason="the system frees no space inside a file"
)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


def written(folder: Path, *parts: bytes) -> SegmentWriter:
    segment = SegmentWriter(folder, 1)
    for part in parts:
        segment.append(part)
    return segment


def restored(folder: Path, store: FakeStore, objects: dict[str, bytes]) -> SentSegments:
    """Return segments as another machine restores them: one after the other in the objects."""
    segments, at = SentSegments(folder, store), 0
    for key, content in objects.items():
        store.put(key, content)
        segments.add([Piece(NAME, at, at + len(content))], key, here=False)
        at += len(content)
    return segments


def read(segments: SentSegments, offset: int, length: int) -> bytes:
    reader = SegmentReader(segments)
    try:
        return reader.read(1, offset, length)
    finally:
        reader.close()


def test_what_another_machine_has_sent_is_read_from_the_objects(tmp_path, store):
    segments = restored(tmp_path / "1", store, {"a": b"0123", "b": b"456789"})

    assert read(segments, 2, 6) == b"234567"
    assert segments.latest() == 1  # so that a new segment has another number
    assert segments.file(1) is None
    assert not (tmp_path / "1").exists()


def test_only_the_objects_that_are_needed_are_read(tmp_path, store):
    segments = restored(tmp_path / "1", store, {"a": b"0" * 300_000, "b": b"1" * 600_000})
    store.objects.pop("a")

    assert read(segments, 300_000, 600_000) == b"1" * 600_000


def test_missing_and_damaged_objects_are_damaged_spans(tmp_path, store):
    content = {"a": b"first\n", "b": b"next\n", "c": b"last\n"}
    segments = restored(tmp_path / "1", store, content)
    store.objects.pop("b")
    store.put("c", b"lost\n")
    spans, at = [], 0
    for number, line in enumerate(content.values()):
        spans.append((Span(number, 1, 1, 1, 0, 0, len(line), 0, 0, checksum(line)), 1, at))
        at += len(line)
    damaged: list[int] = []

    assert [data for _, data in outputs(segments, spans, damaged)] == [b"first\n"]
    assert damaged == [1, 2]


def test_fetched_segments_are_whole_files_with_gaps_for_what_is_missing(tmp_path, store):
    segments = restored(tmp_path / "1", store, {"a": b"0123", "b": b"45", "c": b"6789"})
    store.objects.pop("b")

    segments.fetch()

    assert segments.file(1) == tmp_path / "1" / NAME
    assert (tmp_path / "1" / NAME).read_bytes() == b"0123\0\0006789"


@needs_holes
def test_bytes_that_were_sent_are_freed_once_they_are_many(tmp_path, store, monkeypatch):
    monkeypatch.setattr(sent_segments, "KEPT_BYTES", 1 << 20)
    first, second = os.urandom(900_000), os.urandom(900_000)
    segment = written(tmp_path, first)
    segments = SentSegments(tmp_path, store)
    store.put("a", first)
    segments.add([Piece(NAME, 0, len(first))], "a", here=True)
    segment.append(second)
    store.put("b", second)
    segments.add([Piece(NAME, len(first), len(first + second))], "b", here=True)
    segment.append(b"not sent")

    assert segment.path.stat().st_size == 1_800_008
    assert segment.path.stat().st_blocks * 512 < 100_000
    assert segments.file(1) is None
    assert read(segments, 0, 1_800_008) == first + second + b"not sent"
    segments.fetch()
    assert segment.path.read_bytes() == first + second + b"not sent"


@needs_holes
def test_bytes_behind_a_gap_are_not_freed(tmp_path, store, monkeypatch):
    monkeypatch.setattr(sent_segments, "KEPT_BYTES", 0)
    segment = written(tmp_path, b"a" * 9000, b"b" * 9000)
    segments = SentSegments(tmp_path, store)

    segments.add([Piece(NAME, 9000, 18000)], "later", here=True)

    assert segment.path.read_bytes() == b"a" * 9000 + b"b" * 9000


@needs_holes
def test_a_file_with_another_name_and_a_file_that_may_get_one_stay_whole(
    tmp_path, store, monkeypatch
):
    monkeypatch.setattr(sent_segments, "KEPT_BYTES", 0)
    content = os.urandom(9000)
    for linked in (True, False):
        folder = tmp_path / str(linked)
        folder.mkdir()
        segment = written(folder, content)
        segments = SentSegments(folder, store)
        if linked:
            os.link(segment.path, tmp_path / "result")
        else:
            assert segments.file(1) == segment.path
        segments.add([Piece(NAME, 0, 9000)], "a", here=True)
        assert segment.path.read_bytes() == content
    assert (tmp_path / "result").read_bytes() == content


def test_without_holes_the_file_stays(tmp_path, store, monkeypatch):
    monkeypatch.setattr(sent_segments, "KEPT_BYTES", 0)
    monkeypatch.setattr(sent_segments, "freed", lambda *_: False)
    segment = written(tmp_path, b"a" * 9000)
    segments = SentSegments(tmp_path, store)

    segments.add([Piece(NAME, 0, 9000)], "a", here=True)

    assert segments.file(1) == segment.path
    assert read(segments, 0, 9000) == b"a" * 9000


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30)), min_size=1, max_size=12))
def test_of_pieces_that_overlap_the_later_ones_count(tmp_path_factory, places):
    store, expected = FakeStore(), bytearray(80)
    segments = SentSegments(tmp_path_factory.mktemp("checkpoint"), store)
    known: set[int] = set()
    for number, (start, length) in enumerate(places):
        expected[start : start + length] = bytes([number + 1]) * length
        known.update(range(start, start + length))
        store.put(str(number), bytes([number + 1]) * length)
        segments.add([Piece(NAME, start, start + length)], str(number), here=False)

    for at in range(80):
        assert segments.read(NAME, at, 1) == (expected[at : at + 1] if at in known else b"")
