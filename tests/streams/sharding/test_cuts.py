"""Tests that the expected stages run in worker processes."""

import gzip
import os

import pytest

from dagster_dataops import DataPipeline, read_jsonl
from dagster_dataops.errors import StreamDefinitionError
from dagster_dataops.streams.sharding.cuts import with_workers
from tests.streams.sequences import numbers


def cuts(stream):
    """Return the names in each run, those before it, whether it is dispatched, and the workers."""
    found = []

    def merged(cut, number):
        run = [one.name for one in reversed(cut.run)]
        before = [one.name for one in cut.before.ordered()]
        found.append((run, before, cut.is_dispatched(), number))
        return cut.whole

    with_workers(stream.stage, 4, merged)
    return found


def test_without_a_mark_the_last_elementwise_stages_run_in_workers():
    stream = numbers(1).shuffle(5).map(abs).filter(bool).bucket(2)
    assert cuts(stream) == [(["map", "filter"], ["read_sequence", "shuffle"], False, 4)]
    again = stream.map(sum).prefetch(2)
    before = ["read_sequence", "shuffle", "map", "filter", "bucket"]
    assert cuts(again) == [(["map"], before, True, 4)]


def test_a_mark_decides_where_workers_begin():
    stream = numbers(1).map(abs).sharding_filter().map(abs).bucket(2).map(sum)
    assert cuts(stream) == [(["map"], ["read_sequence", "map"], False, 4)]
    dispatched = numbers(1).sharding_round_robin_dispatch().map(abs)
    assert cuts(dispatched) == [(["map"], ["read_sequence"], True, 4)]
    assert cuts(numbers(1).sharding_filter().bucket(2)) == [([], ["read_sequence"], False, 4)]


def test_files_that_are_costly_to_read_are_read_by_one_process(tmp_path):
    (tmp_path / "plain.jsonl").write_text("{}\n")
    with gzip.open(tmp_path / "packed.jsonl.gz", "wt") as file:
        file.write("{}\n")
    assert not cuts(read_jsonl(tmp_path / "plain.jsonl").map(len))[0][2]
    assert cuts(read_jsonl(tmp_path / "packed.jsonl.gz").map(len))[0][2]


def test_items_in_no_fixed_order_are_read_by_one_process_in_spite_of_the_mark():
    unordered = numbers(1).map(abs, num_parallel_calls=2, deterministic=False)
    assert cuts(unordered.sharding_filter().map(abs))[0][2]


@pytest.mark.parametrize(("combine", "each"), [("concat", 4), ("zip", 2), ("sample", 2)])
def test_inputs_of_a_combination_share_the_workers_if_read_in_turn(combine, each):
    stream = getattr(DataPipeline, combine)(numbers(1).map(abs), numbers(2).map(abs))
    assert cuts(stream) == [(["map"], ["read_sequence"], False, each)] * 2


@pytest.mark.slow
def test_functions_run_in_workers_and_later_stages_in_the_reading_process():
    def process(_):
        return os.getpid()

    own = os.getpid()
    inside = set(numbers(*range(200)).sharding_filter().map(process).workers(2))
    assert own not in inside
    assert len(inside) == 2
    outside = numbers(*range(4)).sharding_filter().map(abs).bucket(2).map(process).workers(2)
    assert set(outside) == {own}
    behind = numbers(*range(4)).map(abs).workers(2).map(process)
    assert set(behind) == {own}
    assert set(numbers(1, 2).map(process).workers(0)) == {own}


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
