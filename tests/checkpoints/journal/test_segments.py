"""Segments: written, read back, and the spans that they hold."""

import os
import random
from pathlib import Path

import pytest
import xxhash

from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader, joined_outputs
from dagster_dataops.checkpoints.journal.segments import Segments
from dagster_dataops.errors import StorageError
from tests.journals import (
    FinishedSpan,
    SegmentWriter,
    Span,
    SpansEntry,
    SpanTable,
    checksum,
    segment_path,
)


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


def _segments(folder: Path, sizes: list[int]) -> list[bytes]:
    contents = [random.Random(number).randbytes(size) for number, size in enumerate(sizes)]
    for number, content in enumerate(contents):
        segment = SegmentWriter(folder, number)
        segment.append(content)
        segment.close()
    return contents


def test_any_piece_of_any_segment_reads_as_it_was_written(tmp_path: Path) -> None:
    contents = _segments(tmp_path, [700_000, 10, 0, 300_000])
    chance = random.Random(1)
    reader = SegmentReader(Segments(tmp_path))
    for _ in range(500):
        number = chance.randrange(len(contents))
        start = chance.randrange(len(contents[number]) + 1)
        length = chance.choice([0, 1, 50, 5000, 400_000])
        assert reader.read(number, start, length) == contents[number][start : start + length]
    reader.close()


def test_more_segments_than_are_kept_open_can_be_read(tmp_path: Path) -> None:
    contents = _segments(tmp_path, [300] * 150)
    reader = SegmentReader(Segments(tmp_path))
    for _ in range(2):
        for number, content in enumerate(contents):
            assert reader.read(number, 0, 300) == content
    reader.close()


def test_a_missing_segment_reads_as_nothing(tmp_path: Path) -> None:
    _segments(tmp_path, [100])
    reader = SegmentReader(Segments(tmp_path))
    assert reader.read(9, 0, 10) == reader.read(9, 0, 1 << 20) == b""
    segment_path(tmp_path, 0).unlink()
    assert reader.read(0, 0, 10) == b""
    reader.close()


def _table(folder: Path, count: int, seed: int) -> tuple[SpanTable, list[bytes]]:
    """Return spans of one record, written in another order than the input's, and their outputs."""
    chance = random.Random(seed)
    outputs = [b"%d" % n * chance.choice([1, 9, 90_000]) + b"\n" for n in range(count)]
    writers = {number: SegmentWriter(folder, number) for number in (1, 2)}
    table = SpanTable()
    for n in chance.sample(range(count), count):
        number = 2 if n % 10 < 3 else 1
        offset = writers[number].append(outputs[n])
        span = Span(n, 1, 1, 1, 0, 0, len(outputs[n]), 0, 0, checksum(outputs[n]))
        table.add(SpansEntry.of(number, offset, [span]))
    for writer in writers.values():
        writer.close()
    return table, outputs


def test_small_outputs_are_joined_in_input_order(tmp_path: Path) -> None:
    table, expected = _table(tmp_path, 500, seed=1)
    parts = list(joined_outputs(Segments(tmp_path), table, damaged := []))
    assert b"".join(output for _, output in parts) == b"".join(expected)
    assert sum(rows for rows, _ in parts) == 500
    assert all(output.count(b"\n") == rows for rows, output in parts)
    assert max(len(output) for _, output in parts) < 4 << 20
    assert len(parts) < 100
    assert damaged == []


def test_damaged_outputs_are_named_and_left_out(tmp_path: Path) -> None:
    table, expected = _table(tmp_path, 60, seed=3)
    path = segment_path(tmp_path, 2)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    parts = list(joined_outputs(Segments(tmp_path), table, damaged := []))
    assert len(damaged) == 1
    kept = [output for n, output in enumerate(expected) if n not in damaged]
    assert b"".join(output for _, output in parts) == b"".join(kept)


def _finished(output: bytes, errors: bytes, source: memoryview | None = None) -> FinishedSpan:
    return FinishedSpan.of(
        70,
        9,
        records=3,
        emitted=1,
        dropped=1,
        failed=1,
        output=output,
        errors=errors,
        source=source,
    )


def test_a_span_holds_positions_sizes_and_the_checksum_of_output_and_errors_in_a_row() -> None:
    span = _finished(b'{"n":1}\n', b'{"e":"rror"}\n').span
    assert (span.start, span.length) == (70, 9)
    assert (span.records, span.emitted, span.dropped, span.failed) == (3, 1, 1, 1)
    assert (span.output_bytes, span.error_bytes) == (8, 13)
    assert span.output_check == checksum(b'{"n":1}\n{"e":"rror"}\n')
    assert span.output_check != checksum(b'{"e":"rror"}\n{"n":1}\n')
    assert _finished(b'{"n":1}\n', b"").span.output_check == checksum(b'{"n":1}\n')


def test_the_input_has_a_checksum_only_on_request() -> None:
    digest = xxhash.xxh3_64_intdigest(b"{}\n{}\n{}\n") & 0xFFFFFFFF
    source = memoryview(b"xx{}\n{}\n{}\n")[2:]
    assert _finished(b"", b"", source).span.input_check == digest
    assert _finished(b"", b"").span.input_check == 0


def test_output_is_handed_over_and_not_copied() -> None:
    output = bytearray(b'{"n":1}\n')
    assert _finished(output, b"").output is output  # type: ignore[arg-type]
