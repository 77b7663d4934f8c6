"""Tests of sharding marks."""

import pytest

from dagster_dataops import DataPipeline
from dagster_dataops.errors import StreamDefinitionError
from tests.streams.sequences import numbers

MARKS = ["sharding_filter", "sharding_round_robin_dispatch"]


def marked(stream, mark="sharding_filter"):
    return getattr(stream, mark)()


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_changes_neither_items_nor_states_nor_seeds(mark):
    with_mark = marked(numbers(*range(9)).shuffle(4), mark).shuffle(0).and_return()
    without = numbers(*range(9)).shuffle(4).shuffle(0).and_return()
    assert [next(iter(with_mark)) for _ in range(3)] == [next(iter(without)) for _ in range(3)]
    assert with_mark.state_dict() == without.state_dict()
    assert with_mark.seeds == without.seeds


@pytest.mark.parametrize("first", MARKS)
@pytest.mark.parametrize("second", MARKS)
def test_a_second_mark_is_refused(first, second):
    with pytest.raises(StreamDefinitionError, match=f"{second}: .*twice.*{first}"):
        marked(marked(numbers(1), first).map(abs), second)
    zipped = DataPipeline.zip(marked(numbers(1), first), marked(numbers(2), second))
    with pytest.raises(StreamDefinitionError, match="twice"):
        marked(zipped)


@pytest.mark.parametrize("combine", ["zip", "concat", "round_robin", "sample"])
def test_a_mark_on_one_input_alone_is_refused(combine):
    combined = getattr(DataPipeline, combine)
    with pytest.raises(StreamDefinitionError, match=r"index 1 has a .*mark.* index 0 has none"):
        combined(numbers(1), marked(numbers(2)))
    assert list(combined(marked(numbers(1)), marked(numbers(2))))


@pytest.mark.parametrize("mark", MARKS)
def test_stages_behind_a_mark_still_read_by_number(mark):
    assert list(marked(numbers(*range(9)), mark).shard(1, 3)) == [1, 4, 7]
