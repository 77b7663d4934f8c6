"""Tests of dagster_dataops.streams.files.contents."""

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.files.contents import WindowedContent


class CutSource:
    """A source that fails after some bytes."""

    def __init__(self, content):
        self.left = content

    def read(self, size):
        if not self.left:
            raise StreamSourceError("cut", "is truncated")
        part, self.left = self.left[:size], self.left[size:]
        return part

    def close(self):
        pass


def test_no_bytes_come_from_behind_the_place_where_a_source_fails():
    content = WindowedContent(lambda: CutSource(b"0123456789"))

    assert content.read_at(4, 4) == b"4567"
    assert content.failure is None
    assert content.read_at(4, 20) == b""
    assert content.failure is not None
    assert content.read_at(4, 8) == b"89"
    assert content.read_at(4, 0) == b"0123"
