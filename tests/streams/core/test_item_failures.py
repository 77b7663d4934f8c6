"""Tests of item_failures: the handling of items on which a stage fails."""

import contextlib
import json
import logging
from itertools import islice

import pytest

from dagster_dataops import DataPipeline, errors, get_last_failed_example, read_sequence


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
