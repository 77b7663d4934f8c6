"""Tests of item_failures: the handling of items on which a stage fails."""

import contextlib
import json
import logging
import multiprocessing
import signal
from collections import Counter
from itertools import islice

import pytest

from dagster_dataops import DataPipeline, errors, get_last_failed_example, read_sequence
from tests.each import each
from tests.streams.functions import fails_on_thirds


def inverse(x):
    return 6 // x


def numbers(*items):
    return read_sequence(list(items)).map(inverse)


def test_a_failure_ends_the_stream_with_the_exception_itself():
    stream = numbers(1, 0, 2).and_return()
    items = []
    with pytest.raises(ZeroDivisionError) as caught:
        for item in stream:
            items.append(item)  # noqa: PERF402 - what came before the error counts

    assert items == [6]
    assert "stage map" in caught.value.__notes__[0]
    assert stream.is_broken
    for attempt in (lambda: next(iter(stream)), stream.state_dict, stream.reset):
        with pytest.raises(errors.DataPipelineError, match="earlier ZeroDivisionError"):
            attempt()
    with pytest.raises(ValueError, match="error has ended"):
        DataPipeline.concat(stream)


@pytest.mark.parametrize("on_error", ["raise", "skip", "quarantine"])
def test_the_item_that_failed_last_is_known(on_error):
    for item in (0, "text"):
        stream = read_sequence([1, item]).map(inverse).prefetch(2).and_return(on_error=on_error)
        with contextlib.suppress(ZeroDivisionError, TypeError):
            list(stream)
        assert get_last_failed_example() == item


def raises_stop_iteration(_):
    raise StopIteration


@pytest.mark.parametrize(
    "stream",
    [
        read_sequence([1]).map(raises_stop_iteration),
        read_sequence([1]).filter(raises_stop_iteration),
        read_sequence([1]).yield_from(raises_stop_iteration),
        read_sequence([1]).map(raises_stop_iteration, num_parallel_calls=2),
        read_sequence([1]).dynamic_bucket(1, raises_stop_iteration),
    ],
)
def test_a_function_that_raises_stop_iteration_does_not_end_the_data(stream):
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(stream)


def test_failures_are_skipped_counted_and_logged(caplog):
    stream = numbers(1, 0, 2, 0, 3).and_return(on_error="skip")
    with caplog.at_level(logging.WARNING):
        assert list(stream) == [6, 3, 2]

    assert stream.errors == 2
    assert stream.quarantined == []
    assert caplog.text.count("stage map: skipped: ZeroDivisionError") == 2


@pytest.mark.parametrize(
    "options", [{"on_error": "skip", "max_errors": 2}, {"max_num_warnings": 2}]
)
def test_more_failures_than_allowed_end_the_stream(options):
    assert list(numbers(0, 1, 0).and_return(**options)) == [6]
    stream = numbers(0, 1, 0, 0).and_return(**options)
    with pytest.raises(errors.DataPipelineError, match="failed items: 3, more than max_errors=2"):
        list(stream)


def test_quarantine_stores_items_with_their_errors(tmp_path):
    path = tmp_path / "sub" / "bad.jsonl"
    stream = numbers(1, 0, "x").and_return(on_error="quarantine", quarantine=path)
    list(stream)
    kept = [json.loads(line) for line in path.read_text().splitlines()]

    assert kept == stream.quarantined
    assert [(one["stage"], one["item"], one["exception"]) for one in kept] == [
        ("map", 0, "ZeroDivisionError"),
        ("map", "x", "TypeError"),
    ]


def recipe():
    items = [n % 4 for n in range(40)]
    return (
        read_sequence(items)
        .map(inverse)
        .shuffle(8)
        .filter(lambda x: 12 // (x - 3) < 9)
        .map(lambda x: 12 // (x - 2), num_parallel_calls=2)
        .yield_from(lambda x: read_sequence([x, x - 3, 1]).map(inverse))
    )


def test_a_resumed_stream_counts_and_stores_no_failure_twice(tmp_path):
    options = {"on_error": "quarantine", "quarantine": tmp_path / "bad.jsonl"}
    stream = recipe().and_return(**options)
    expected = list(stream)
    kept = sorted((tmp_path / "bad.jsonl").read_text().splitlines())
    assert stream.errors == len(kept)
    assert {json.loads(line)["stage"] for line in kept} == {"map", "filter", "yield_from"}
    for position in range(len(expected) + 1):
        (tmp_path / "bad.jsonl").unlink(missing_ok=True)
        first = recipe().and_return(**options)
        assert list(islice(first, position)) == expected[:position]
        state = json.loads(json.dumps(first.state_dict()))
        list(islice(first, 3))  # killed a little after its last state
        second = recipe().and_return(**options)
        second.load_state_dict(state)
        assert list(second) == expected[position:]
        assert second.errors == len(kept)
        assert sorted((tmp_path / "bad.jsonl").read_text().splitlines()) == kept


def test_a_line_truncated_by_a_kill_is_written_again(tmp_path):
    path = tmp_path / "bad.jsonl"
    options = {"on_error": "quarantine", "quarantine": path}
    first = numbers(1, 0, 2, 0, 3).and_return(**options)
    assert list(islice(first, 2)) == [6, 3]
    state = first.state_dict()
    list(first)
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:cut])
        second = numbers(1, 0, 2, 0, 3).and_return(**options)
        second.load_state_dict(state)
        assert list(second) == [2]
        assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


def test_max_errors_counts_on_after_a_state():
    builder = numbers(0, 1, 0, 2, 0, 3)
    stream = builder.and_return(on_error="skip", max_errors=2)
    assert list(islice(stream, 2)) == [6, 3]
    again = builder.and_return(on_error="skip", max_errors=2)
    again.load_state_dict(stream.state_dict())
    with pytest.raises(errors.DataPipelineError, match="failed items: 3"):
        list(again)


def test_rows_that_cannot_be_made_flat_are_failures():
    pairs = DataPipeline.zip(
        read_sequence([{"a": 1}, {"a": 2}]), read_sequence([{"a": 1}, {"b": 2}]), flatten=True
    )
    assert list(pairs.and_return(on_error="skip")) == [{"a": 2, "b": 2}]


def test_an_infinite_stream_cannot_be_part_of_another():
    stream = read_sequence([1, 2]).yield_from(lambda n: DataPipeline.count())
    with pytest.raises(errors.DataPipelineError, match="never ends because of count"):
        list(stream)
    with pytest.raises(errors.DataPipelineError, match="returned a int, not a stream"):
        list(read_sequence([1]).yield_from(lambda n: n))


@pytest.mark.parametrize(
    "read", [lambda stream: stream.workers(1), lambda stream: stream.shard(0, 1, contiguous=True)]
)
def test_failures_in_the_stream_of_an_item_are_skipped_however_it_is_read(read):
    def of_item(number):
        return read(read_sequence([number, 0, 3]).map(lambda x: 6 // x))

    stream = read_sequence([1, 2]).yield_from(of_item).and_return(on_error="skip")
    assert list(stream) == [6, 2, 3, 2]
    assert stream.errors == 2


# ---------------------------------------------------------------- failures in a row


def always_fails(item):
    raise ValueError(f"bad {item}")


async def always_fails_later(item):
    raise ValueError(f"bad {item}")


def fails_below(number):
    def function(item):
        if _first(item) < number:
            raise ValueError(f"bad {item}")
        return item

    return function


def _first(item):
    return item[0] if isinstance(item, list) else item


def endless():
    return DataPipeline.count()


ENDLESS = {
    "map": lambda: endless().map(always_fails),
    "random map": lambda: endless().map(lambda item, random: always_fails(item), random=True),
    "filter": lambda: endless().filter(always_fails),
    "threads": lambda: endless().map(always_fails, num_parallel_calls=2),
    "threads, any order": lambda: endless().map(
        always_fails, num_parallel_calls=2, deterministic=False
    ),
    "event loop": lambda: endless().map(always_fails_later, num_parallel_calls=2),
    "read ahead": lambda: endless().map(always_fails).prefetch(2),
    "yield_from": lambda: endless().yield_from(always_fails),
    "inside yield_from": lambda: endless().yield_from(
        lambda item: read_sequence([item]).map(always_fails)
    ),
    "dynamic_bucket": lambda: endless().dynamic_bucket(2, always_fails),
    "bucket_by_length": lambda: endless().skip(10).bucket_by_length([(2, 5)]),
    "batches": lambda: endless().bucket(2).map(always_fails),
    "selection of packs": lambda: endless().pack_windows(2, always_fails, list),
    "packs": lambda: endless().pack_windows(2, lambda window: [window], always_fails),
    "zip": lambda: DataPipeline.zip(
        read_sequence([{"a": 1}]).repeat(), read_sequence([{"a": 1}]).repeat(), flatten=True
    ),
    "workers": lambda: endless().map(always_fails).workers(2),
    "workers, inside yield_from": lambda: (
        endless().yield_from(lambda item: read_sequence([item]).map(always_fails)).workers(2)
    ),
    "workers, before a mark": lambda: (
        endless().map(always_fails).sharding_filter().map(abs).workers(2)
    ),
    "workers, before a dispatching mark": lambda: (
        endless().map(always_fails).sharding_round_robin_dispatch().map(abs).workers(2)
    ),
    "workers, of two stages": lambda: endless().map(abs).map(always_fails).workers(2),
}


@pytest.mark.slow
@each("name", ENDLESS)
def test_a_stream_on_which_all_fails_ends_after_100_failures(name):
    stream = ENDLESS[name]().and_return(on_error="skip")
    with pytest.raises(errors.DataPipelineError, match="failed on 100 items in a row, first with"):
        next(iter(stream))
    assert stream.errors == 100
    assert stream.is_broken


def test_the_error_names_the_first_cause_and_what_to_do():
    stream = read_sequence([5, 0, 0, 7, "x", 0]).map(inverse)
    stream = stream.and_return(on_error="quarantine", failure_tolerance=2)
    reader = iter(stream)
    assert next(reader) == 1
    pattern = "stage map failed on 2 items in a row, first with ZeroDivisionError: .*Correct"
    with pytest.raises(errors.DataPipelineError, match=pattern) as caught:
        next(reader)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert [one["item"] for one in stream.quarantined] == [0, 0]


SOME = {
    "map": lambda function: endless().map(function),
    "filter": lambda function: endless().filter(lambda item: function(item) is not None),
    "threads": lambda function: endless().map(function, num_parallel_calls=2),
    "yield_from": lambda function: endless().yield_from(
        lambda item: read_sequence([function(item)])
    ),
    "inside yield_from": lambda function: endless().yield_from(
        lambda item: read_sequence([item]).map(function)
    ),
    "pack": lambda function: endless().pack_windows(1, lambda window: [window], function),
    "workers": lambda function: endless().map(function).workers(2),
    "workers, yield_from": lambda function: (
        endless().yield_from(lambda item: read_sequence([function(item)])).workers(2)
    ),
}


@pytest.mark.slow
@each("name", SOME)
def test_as_many_failures_in_a_row_as_allowed_are_skipped_however_they_are_read(name):
    for failing, tolerance in ((99, 100), (150, 151), (300, None)):
        options = {"on_error": "skip", "failure_tolerance": tolerance}
        found = next(iter(SOME[name](fails_below(failing)).and_return(**options)))
        assert _first(found) == failing
        if tolerance:
            ended = SOME[name](fails_below(failing + 1)).and_return(**options)
            with pytest.raises(errors.DataPipelineError, match=f"on {tolerance} items in a row"):
                next(iter(ended))


@pytest.mark.slow
@each("read", [lambda builder: builder, lambda builder: builder.workers(2)])
def test_failures_with_successes_between_are_not_in_a_row(read):
    def every_third(item):
        if item % 3:
            raise ValueError
        return item

    kept = endless().map(every_third).filter(lambda item: item == 3000)
    stream = read(kept).and_return(on_error="skip", failure_tolerance=3)
    assert next(iter(stream)) == 3000
    ended = read(kept).and_return(on_error="skip", failure_tolerance=2)
    with pytest.raises(errors.DataPipelineError, match="on 2 items in a row"):
        next(iter(ended))


@pytest.mark.slow
@each(
    "read",
    [
        lambda builder: builder,
        lambda builder: builder.workers(2),
        lambda builder: builder.sharding_filter().map(abs).workers(2),
    ],
)
def test_a_stream_without_limit_in_a_row_ends_after_max_errors(read):
    stream = read(endless().map(always_fails)).and_return(max_num_warnings=150)
    with pytest.raises(errors.DataPipelineError, match="failed items: 151, more than max_errors"):
        next(iter(stream))


def test_max_num_warnings_allows_as_many_in_a_row():
    assert next(iter(endless().map(fails_below(150)).and_return(max_num_warnings=150))) == 150


def test_an_invalid_tolerance_is_refused():
    with pytest.raises(errors.StreamDefinitionError, match="failure_tolerance"):
        endless().and_return(failure_tolerance=0)


def test_an_error_of_a_signal_handler_is_a_failure_of_the_function_that_it_interrupts():
    def handler(*_):
        raise TimeoutError("too long")

    def interrupted(item):
        if item == 1:
            signal.raise_signal(signal.SIGALRM)
        return item

    before = signal.signal(signal.SIGALRM, handler)
    try:
        stream = read_sequence([0, 1, 2]).map(interrupted).and_return(on_error="quarantine")
        assert list(stream) == [0, 2]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert stream.quarantined[0]["exception"] == "TimeoutError"


# ---------------------------------------------------------------- one file of several ranks


def shard(rank, ranks, path):
    stream = read_sequence(list(range(24))).shard(rank, ranks).map(fails_on_thirds)
    return stream.and_return(on_error="quarantine", quarantine=path)


def _items(path):
    return sorted(json.loads(line)["item"] for line in path.read_text().splitlines())


def test_ranks_that_share_a_file_keep_the_entries_of_one_another(tmp_path):
    path = tmp_path / "bad.jsonl"
    streams = [shard(rank, 2, path) for rank in range(2)]
    states = []
    for stream in streams:
        list(islice(stream, 4))
        states.append(stream.state_dict())
        list(stream)
    assert _items(path) == list(range(0, 24, 3))
    for rank, state in enumerate(states):
        stream = shard(rank, 2, path)
        stream.load_state_dict(state)
        assert all(one["rank"] == rank for one in stream.quarantined)
        list(stream)
        assert _items(path) == list(range(0, 24, 3))
    assert list(tmp_path.iterdir()) == [path]


def test_entries_of_another_number_of_ranks_are_divided_among_the_ranks(tmp_path):
    path = tmp_path / "bad.jsonl"
    for rank in range(3):
        list(shard(rank, 3, path))
    for rank in range(2):
        shard(rank, 2, path).load_state_dict(shard(rank, 2, path).state_dict())
    assert _items(path) == []


def _write_many(path, rank, count):
    stream = read_sequence([0] * count).shard(rank, 4, contiguous=True).map(fails_on_thirds)
    options = {"on_error": "quarantine", "failure_tolerance": None}
    for _ in range(3):
        one = stream.and_return(quarantine=path, **options)
        one.load_state_dict(one.state_dict())  # drops the entries of this rank
        list(one)


@pytest.mark.slow
def test_ranks_that_write_and_resume_at_the_same_time_lose_no_entry(tmp_path):
    path = tmp_path / "bad.jsonl"
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=_write_many, args=(path, rank, 400)) for rank in range(4)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
        assert one.exitcode == 0
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert Counter(one["rank"] for one in entries) == dict.fromkeys(range(4), 100)


def test_a_line_that_another_rank_left_torn_costs_no_other_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    stream = shard(0, 2, path)
    list(stream)
    with path.open("ab") as file:
        file.write(b'{"counter":0,"numb')
    list(shard(1, 2, path))
    again = shard(0, 2, path)
    again.load_state_dict(stream.state_dict())
    assert _items(path) == list(range(0, 24, 3))


def test_failed_items_up_to_a_loaded_position_are_kept():
    stream = numbers(1, 0, 2, 0, 3).and_return(on_error="quarantine")
    reader = iter(stream)
    next(reader), next(reader)
    state = stream.state_dict()
    list(reader)
    assert len(stream.quarantined) == 2
    stream.load_state_dict(state)
    assert [one["number"] for one in stream.quarantined] == [1]
    assert list(stream) == [2]
    assert [one["number"] for one in stream.quarantined] == [1, 2]
