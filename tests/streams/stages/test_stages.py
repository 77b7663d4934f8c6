"""Tests of stages that order, choose and map items, and of the index of lines."""

import json
import os
import threading
from itertools import islice

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagster_dataops import DataPipeline, errors, list_files, read_jsonl, read_sequence
from dagster_dataops.errors import StreamArgumentError, StreamDefinitionError
from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.files import line_index
from dagster_dataops.testing import assert_resumes_anywhere
from tests.faults.crashing import HANG_SECONDS
from tests.streams.indexed_files import numbers as file_numbers
from tests.streams.indexed_files import records, write
from tests.streams.sequences import numbers


def test_it_is_the_order_in_which_a_list_of_them_would_be_shuffled(source):
    held = read_jsonl(source).map(lambda record: record).shuffle(0, seed=3).repeat(2)

    assert file_numbers(read_jsonl(source).shuffle(0, seed=3).repeat(2)) == file_numbers(held)


def test_every_record_occurs_once_per_epoch_and_epochs_differ(source):
    found = file_numbers(read_jsonl(source).shuffle(0).repeat(3))
    epochs = [found[:100], found[100:200], found[200:]]

    assert [sorted(epoch) for epoch in epochs] == [list(range(100))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    equal = file_numbers(read_jsonl(source).shuffle(0).repeat(2, reset_rng=True))
    assert equal[:100] == equal[100:] == epochs[0]


@pytest.mark.parametrize("uneven", [True, False])
def test_shards_read_only_their_own_records(source, uneven, monkeypatch):
    whole = file_numbers(read_jsonl(source).shuffle(0, seed=1))
    decoded = []
    monkeypatch.setattr(line_index, "_parse", lambda line: decoded.append(1) or orjson.loads(line))

    for at in range(3):
        decoded.clear()
        shard = file_numbers(read_jsonl(source).shuffle(0, seed=1).shard(at, 3, uneven))
        assert shard == (whole if uneven else whole[:99])[at::3]
        assert len(decoded) == len(shard)


@pytest.mark.slow
def test_it_resumes_at_any_position(source):
    assert_resumes_anywhere(lambda: read_jsonl(source).shuffle(0))
    assert_resumes_anywhere(lambda: read_jsonl(source).shuffle(0).repeat(3), limit=250)
    assert_resumes_anywhere(lambda: read_jsonl(source).shuffle(0).shard(1, 3).repeat(2).bucket(4))
    assert_resumes_anywhere(lambda: read_jsonl(source).shuffle(0).shard(1, 7, False).repeat(2))
    folder = source.parent
    assert_resumes_anywhere(
        lambda: list_files(folder).yield_from(lambda path: read_jsonl(path).shuffle(0))
    )
    assert_resumes_anywhere(
        lambda: DataPipeline.sample(read_jsonl(source).shuffle(0), DataPipeline.count(), seed=1)
    )


def test_resuming_reads_no_earlier_record(source, monkeypatch):
    stream = read_jsonl(source).shuffle(0).and_return()
    whole = file_numbers(islice(stream, 97))
    state = stream.state_dict()
    again = read_jsonl(source).shuffle(0).and_return()
    again.load_state_dict(state)
    decoded = []
    monkeypatch.setattr(line_index, "_parse", lambda line: decoded.append(1) or orjson.loads(line))

    assert sorted(whole + file_numbers(again)) == list(range(100))
    assert len(decoded) == 3


def test_its_state_is_as_small_at_the_end_as_at_the_start(source):
    stream = read_jsonl(source).shuffle(0).and_return()
    before = len(json.dumps(stream.state_dict()))
    list(stream)
    assert len(json.dumps(stream.state_dict())) - before <= 2


def test_lines_that_are_not_records_are_skipped_and_named(tmp_path):
    lines = records(40)
    lines[7], lines[20] = b'{"n": 7', b"[20]"
    source = write(tmp_path / "bad.jsonl", lines)

    def make():
        return read_jsonl(source).shuffle(0, seed=2).and_return(on_error="quarantine")

    assert_resumes_anywhere(make)
    stream = make()
    assert sorted(file_numbers(stream)) == [n for n in range(40) if n not in {7, 20}]
    messages = sorted(entry["message"] for entry in stream.quarantined)
    assert stream.errors == 2
    assert "line 21" in messages[0]
    assert "line 8: not JSON" in messages[1]
    with pytest.raises(errors.StreamSourceError, match=r"bad\.jsonl, line (8|21)"):
        list(read_jsonl(source).shuffle(0))


def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error(source):
    iterator = iter(read_jsonl(source).shuffle(0))
    next(iterator)
    os.truncate(source, 10)
    with pytest.raises(errors.StreamSourceError, match="became shorter"):
        list(iterator)


def test_a_missing_file_is_reported_when_it_is_read(tmp_path):
    builder = read_jsonl(tmp_path / "missing.jsonl").shuffle(0)
    with pytest.raises(errors.StreamSourceError, match=r"missing\.jsonl"):
        list(builder)


def test_the_records_of_several_files_are_numbered_on_from_one_to_the_next(tmp_path):
    paths = [str(write(tmp_path / f"{size}.jsonl", records(size))) for size in (3, 0, 5, 1)]
    with line_index.JsonAccess(paths, FailureHandler().counter("read_jsonl")).opened() as source:
        found = [source.item(number)["n"] for number in range(source.size)]
    assert found == [0, 1, 2, 0, 1, 2, 3, 4, 0]


def test_prefetching_reads_ahead_and_no_further():
    read = []
    reached = threading.Event()

    def note(x):
        read.append(x)
        if x == 4:
            reached.set()
        return x

    stream = DataPipeline.count().map(note).prefetch(3).and_return()
    iterator = iter(stream)
    assert next(iterator) == 0
    assert reached.wait(HANG_SECONDS)
    assert max(read) <= 5


def test_epochs_are_shuffled_differently_by_default():
    stream = read_sequence(list(range(50))).shuffle(0).and_return()
    first = list(stream)
    stream.reset()
    second = list(stream)
    stream.reset(reset_rng=True)

    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))
    assert list(stream) == first


def test_every_inner_stream_is_shuffled_in_its_own_way():
    stream = read_sequence([20, 20]).yield_from(lambda n: read_sequence(list(range(n))).shuffle(0))
    items = list(stream)

    assert sorted(items[:20]) == sorted(items[20:]) == list(range(20))
    assert items[:20] != items[20:]


def test_records_follow_the_weights():
    drawn = DataPipeline.sample(
        DataPipeline.constant("a").map(str), read_sequence(["b"] * 2000), weights=[3, 1], seed=1
    )
    items = list(drawn)

    assert items.count("b") == 2000
    assert 2.7 < items.count("a") / 2000 < 3.3


def test_sample_without_repeats_draws_pseudo_infinite_streams_as_well():
    items = list(
        DataPipeline.sample(
            DataPipeline.count(), read_sequence(["x"] * 20), allow_repeats=False, seed=1
        )
    )

    assert items.count("x") == 20
    assert [item for item in items if item != "x"] == list(range(len(items) - 20))
    assert len(items) > 22


def test_an_empty_stream_cannot_be_sampled():
    with pytest.raises(errors.DataPipelineError, match="index 1 is empty"):
        list(DataPipeline.sample(read_sequence([1]), read_sequence([])))


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


def test_functions_that_change_items_never_change_the_source():
    def marked(record):
        record["seen"] = record.get("seen", 0) + 1
        record["inner"]["list"].append(1)
        return record

    records = [{"inner": {"list": []}}]
    stream = read_sequence(records).repeat(3).map(marked)
    once = {"inner": {"list": [1]}, "seen": 1}

    assert list(stream) == [once] * 3
    assert list(DataPipeline.constant({"inner": {"list": []}}).map(marked).take(2)) == [once] * 2
    assert records == [{"inner": {"list": []}}]


def test_a_filter_returns_true_or_false():
    assert list(read_sequence([1, 0, 2]).filter(lambda x: x)) == [1, 2]
    assert list(read_sequence([1]).filter(lambda x: None)) == []
    with pytest.raises(RuntimeError, match="must return True or False, not a list"):
        list(read_sequence([1]).filter(lambda x: [x]))
    kept = read_sequence([{"a": {"n": 1}}, {"a": {"n": 2}}]).filter(lambda n: n > 1, "a.n")
    assert list(kept) == [{"a": {"n": 2}}]


def drawn(item, random):
    return item + random.random()


def test_values_depend_on_the_seed_of_the_stream_and_on_the_stage():
    stream = numbers(*range(5)).map(drawn, random=True)
    assert list(stream) == list(stream.and_return(seed=0))
    assert list(stream) != list(stream.and_return(seed=1))
    assert list(stream) != list(numbers(*range(5)).map(abs).map(drawn, random=True))
    assert stream.and_return().seeds.keys() == {"read_sequence>map"}


def test_all_functions_and_selected_parts_draw_from_the_generator_of_the_item():
    stream = read_sequence([{"a": 0, "b": 0}] * 2).map([drawn, drawn], "a,b", random=True)
    values = [value for record in stream for value in record.values()]
    assert len(set(values)) == 4
    assert all(0 < value < 2 for value in values)


def test_a_failure_shifts_no_other_value():
    def failing(item, random):
        value = random.random()
        return 1 // item and value

    def values(first):
        return list(numbers(first, 1, 1).map(failing, random=True).and_return(on_error="skip"))

    assert values(0) == values(1)[1:]
    with pytest.raises(ZeroDivisionError):
        list(numbers(0).map(failing, random=True))


@pytest.mark.parametrize("fn", [lambda item: item, [drawn, str.upper], lambda item, *, random: 1])
def test_a_function_that_takes_no_generator_is_refused_at_definition(fn):
    with pytest.raises(StreamArgumentError, match=r"fn is called with an item and a random.Random"):
        numbers(1).map(fn, random=True)
