import random
from pathlib import Path

from dagster_dataops.checkpoints.reading import SegmentReader
from dagster_dataops.checkpoints.segments import SegmentWriter, segment_path


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
