import random
from pathlib import Path

from dagster_dataops.checkpoints.journal.segment_reader import SegmentReader, joined_outputs
from tests.journals import SegmentWriter, Span, SpansEntry, SpanTable, checksum, segment_path


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
    reader = SegmentReader(tmp_path)
    for _ in range(500):
        number = chance.randrange(len(contents))
        start = chance.randrange(len(contents[number]) + 1)
        length = chance.choice([0, 1, 50, 5000, 400_000])
        assert reader.read(number, start, length) == contents[number][start : start + length]
    reader.close()


def test_more_segments_than_are_kept_open_can_be_read(tmp_path: Path) -> None:
    contents = _segments(tmp_path, [300] * 150)
    reader = SegmentReader(tmp_path)
    for _ in range(2):
        for number, content in enumerate(contents):
            assert reader.read(number, 0, 300) == content
    reader.close()


def test_a_missing_segment_reads_as_nothing(tmp_path: Path) -> None:
    _segments(tmp_path, [100])
    reader = SegmentReader(tmp_path)
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
    parts = list(joined_outputs(tmp_path, table, damaged := []))
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
    parts = list(joined_outputs(tmp_path, table, damaged := []))
    assert len(damaged) == 1
    kept = [output for n, output in enumerate(expected) if n not in damaged]
    assert b"".join(output for _, output in parts) == b"".join(kept)
