import os
from pathlib import Path

import pytest

from dagster_dataops.errors import StorageError
from tests.journals import SegmentWriter, checksum, segment_path


def test_appended_bytes_are_at_the_returned_offset(tmp_path: Path) -> None:
    segment = SegmentWriter(tmp_path, 7)
    pieces = [b"one", b"", b"three" * 1000]
    places = [segment.append(piece) for piece in pieces]
    segment.close()
    segment.close()
    content = segment_path(tmp_path, 7).read_bytes()
    assert [content[at : at + len(p)] for at, p in zip(places, pieces, strict=True)] == pieces


def test_no_segment_has_two_writers(tmp_path: Path) -> None:
    SegmentWriter(tmp_path, 1).close()
    with pytest.raises(StorageError, match=r"segment-00001.jsonl: cannot create the segment"):
        SegmentWriter(tmp_path, 1)


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:3], at))
    segment = SegmentWriter(tmp_path, 1)
    assert [segment.append(b"0123456789"), segment.append(b"abcd")] == [0, 10]
    segment.close()
    assert segment.path.read_bytes() == b"0123456789abcd"


def test_bytes_left_by_a_failed_write_are_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = SegmentWriter(tmp_path, 1)
    segment.append(b"first")
    pwrite = os.pwrite

    def full(descriptor: int, data: bytes, at: int) -> int:
        pwrite(descriptor, data[:3], at)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
        patch.setattr(os, "pwrite", full)
        segment.append(b"second")
    assert segment.append(b"third") == 5
    segment.close()
    assert segment.path.read_bytes() == b"firstthird"


def test_checksums_are_32_bits_and_differ_for_different_content() -> None:
    sums = {checksum(str(n).encode()) for n in range(1000)}
    assert len(sums) == 1000
    assert max(sums) < 2**32


def test_a_segment_that_exists_can_be_continued(tmp_path: Path) -> None:
    segment_path(tmp_path, 1).write_bytes(b"hello")
    segment = SegmentWriter(tmp_path, 1, exists=True)
    segment.offset = 5
    assert segment.append(b" ", b"", bytearray(b"world")) == 5
    assert segment.offset == 11
    segment.close()
    assert segment_path(tmp_path, 1).read_bytes() == b"hello world"
