"""Tests of contiguous shards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import DataPipeline, read_jsonl
from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.testing import assert_resumes_anywhere
from tests.streams.indexed_files import numbers as file_numbers
from tests.streams.sequences import numbers


def shards(stream, count, **options):
    return [list(stream.shard(at, count, contiguous=True, **options)) for at in range(count)]


@given(size=st.integers(0, 50), count=st.integers(1, 12))
def test_contiguous_shards_one_after_another_are_the_stream(size, count):
    stream = numbers(*range(size))
    for made in (stream, stream.map(abs).filter(lambda n: True), stream.shuffle(0)):
        found = shards(made, count)
        assert [item for shard in found for item in shard] == list(made)
        sizes = [len(shard) for shard in found]
        assert sizes == sorted(sizes, reverse=True)
        assert max(sizes) - min(sizes) <= 1


def test_even_contiguous_shards_leave_the_last_items_out():
    assert shards(numbers(*range(8)), 3, allow_uneven=False) == [[0, 1], [2, 3], [4, 5]]


def test_contiguous_shards_of_files_are_read_by_number(source):
    stream = read_jsonl(source)
    assert [file_numbers(shard) for shard in shards(stream, 3)] == [
        list(range(34)),
        list(range(34, 67)),
        list(range(67, 100)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "file shuffled", "mapped", "epochs"])
def test_contiguous_shards_resume_anywhere(source, kind):
    def made():
        file = read_jsonl(source).map(lambda record: record["n"])
        return {
            "file": lambda: read_jsonl(source).shard(1, 20, contiguous=True),
            "file shuffled": lambda: read_jsonl(source).shuffle(0).shard(1, 20, contiguous=True),
            "mapped": lambda: file.shard(1, 20, contiguous=True),
            "epochs": lambda: file.shuffle(7).shard(3, 30, contiguous=True).repeat(2),
        }[kind]()

    assert_resumes_anywhere(made, workers=(2,))


def test_a_stream_that_never_ends_has_no_contiguous_shards():
    with pytest.raises(StreamDefinitionError, match="count.*no contiguous parts"):
        DataPipeline.count().shard(0, 2, contiguous=True)
