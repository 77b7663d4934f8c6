"""Records in web archives."""

import gzip

import pytest

from dagster_dataops import errors, readers
from dagster_dataops.testing import assert_resumes_anywhere
from tests.readers.warc.archives import PAGES, byte_of, page


def test_a_position_is_the_byte_at_which_a_record_begins(archive):
    stream = readers.read_warc(archive).and_return()
    rows = [next(iter(stream)) for _ in range(PAGES)]
    position = stream.state_dict()["position"]
    assert (position["number"], position["within"]["item_index"]) == (0, 1)
    begin = byte_of(stream)
    assert archive.read_bytes()[begin:].startswith((b"WARC/1.", b"\x1f\x8b"))
    assert begin > archive.stat().st_size * 0.7
    assert rows[-1]["url"].endswith(str(PAGES - 1))


def test_a_truncated_file_is_an_error_after_its_remaining_content(archive):
    content, expected = archive.read_bytes(), list(readers.read_warc(archive, None))
    stream = readers.read_warc(archive, None).and_return()
    begins = [byte_of(stream) for _ in stream]
    ends = [*begins[1:], len(content)]
    for cut in set(range(1, len(content), 97)) - {0, *ends, *(end - 4 for end in ends)}:
        archive.write_bytes(content[:cut])
        found = []
        with pytest.raises(
            errors.StreamSourceError, match=r"pages\..*, record at byte \d+: is truncated"
        ):
            for row in readers.read_warc(archive, None):
                found.append(row)  # noqa: PERF402 - to see what came before the error
        assert found == expected[: sum(end <= cut for end in ends)]


def test_a_file_of_whole_records_is_whole(archive):
    content, expected = archive.read_bytes(), list(readers.read_warc(archive, None))
    stream = readers.read_warc(archive, None).and_return()
    for number, end in enumerate(byte_of(stream) for _ in stream):
        archive.write_bytes(content[:end])
        assert list(readers.read_warc(archive, None)) == expected[:number]


def test_records_that_were_packed_together_resume_anywhere(tmp_path):
    path = tmp_path / "together.warc.gz"
    records = [record for number in range(5) for record in page(number)]
    path.write_bytes(b"".join(gzip.compress(b"".join(records[at : at + 4])) for at in (0, 4, 8)))
    assert len(list(readers.read_warc(path))) == 5
    assert_resumes_anywhere(lambda: readers.read_warc(path, None))


def test_lines_may_end_with_a_line_feed_alone(tmp_path):
    path = tmp_path / "bare.warc"
    records = [record for number in range(4) for record in page(number)]
    heads = [record.partition(b"\r\n\r\n") for record in records]
    bare = [
        head.replace(b"\r\n", b"\n") + b"\n\n" + rest.removesuffix(b"\r\n\r\n") + b"\n\n"
        for head, _, rest in heads
    ]
    (tmp_path / "whole.warc").write_bytes(b"".join(records))
    expected = list(readers.read_warc(tmp_path / "whole.warc", None))
    for between in (b"", b"\n", b"\r\n\n"):
        path.write_bytes(between.join(bare))
        assert list(readers.read_warc(path, None)) == expected
        path.write_bytes(gzip.compress(between.join(bare)))
        assert list(readers.read_warc(path, None)) == expected
    assert_resumes_anywhere(lambda: readers.read_warc(path, None))
