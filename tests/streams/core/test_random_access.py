"""The places of shards."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops.streams.core.random_access import ShardSlice


def runs(size, shards):
    return [ShardSlice(shard, shards, contiguous=True).places(size) for shard in range(shards)]


def test_the_first_shards_have_one_more():
    assert list(map(list, runs(5, 2))) == [[0, 1, 2], [3, 4]]


@given(size=st.integers(0, 50), shards=st.integers(1, 12))
def test_contiguous_shards_are_consecutive_disjoint_and_complete(size, shards):
    found = list(map(list, runs(size, shards)))

    assert list(chain.from_iterable(found)) == list(range(size))
    assert max(map(len, found)) - min(map(len, found)) <= 1
