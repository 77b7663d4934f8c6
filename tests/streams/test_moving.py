"""Iterators of a stream whose position moves: they go on there, and nothing reads on behind."""

import asyncio
import multiprocessing
import threading
import time
from functools import partial

import pytest

from dagster_dataops import DataPipeline, PartFiles, read_iterator, read_jsonl, read_sequence
from dagster_dataops.errors import DataPipelineError
from tests.each import each

_WAIT_SECONDS = 10


def _numbers(count=20):
    return read_sequence(list(range(1, count + 1)))


def _some():
    return [_numbers(4), _numbers(9)]


def _tenfold(number):
    return number * 10


async def _tenfold_later(number):
    return number * 10


def _twice(number):
    return read_sequence([number, -number])


def _pairs(window):
    return [window[:2], window[2:]]


STAGES = {
    "map": lambda: _numbers().map(_tenfold),
    "random map": lambda: _numbers().map(lambda item, random: [item, random.random()], random=True),
    "threads": lambda: _numbers().map(_tenfold, num_parallel_calls=3),
    "event loop": lambda: _numbers().map(_tenfold_later, num_parallel_calls=3),
    "filter": lambda: _numbers().filter(lambda item: item % 3 > 0),
    "prefetch": lambda: _numbers().map(_tenfold).prefetch(3),
    "prefetch twice": lambda: _numbers().prefetch(3).bucket(2).prefetch(2),
    "shuffle": lambda: _numbers().shuffle(4),
    "shuffle all": lambda: _numbers().shuffle(0),
    "shuffle read ahead": lambda: _numbers().prefetch(5).shuffle(4).prefetch(2),
    "bucket": lambda: _numbers().bucket(3),
    "bucket by length": lambda: _numbers().bucket_by_length([(2, 10), (3, 30)]),
    "dynamic bucket": lambda: _numbers().dynamic_bucket(9, lambda item: item),
    "pack": lambda: _numbers().pack_windows(5, _pairs, lambda group: [group]),
    "concat": lambda: DataPipeline.concat(_some()),
    "zip": lambda: DataPipeline.zip(_some(), zip_to_shortest=True),
    "round robin": lambda: DataPipeline.round_robin(_some()),
    "sample": lambda: DataPipeline.sample(_some(), weights=[1, 2]),
    "yield_from": lambda: _numbers().yield_from(_twice),
    "take": lambda: _numbers().take(12),
    "skip": lambda: _numbers().skip(3),
    "repeat": lambda: _numbers(5).shuffle(0).repeat(3),
    "shard": lambda: _numbers().shard(1, 3),
    "contiguous shard": lambda: _numbers().shard(1, 3, contiguous=True),
    "source": _numbers,
    "records": lambda: read_sequence([{"n": number} for number in range(15)]),
    "iterator": lambda: read_iterator(iter(range(15)), lambda one: iter(range(15)), infinite=False),
}


def _files(folder):
    lines = [f'{{"n":{number}}}\n' for number in range(30)]
    (folder / "lines.jsonl").write_text("".join(lines))
    (folder / "part-0").write_text("".join(lines))
    parts = PartFiles(folder, data_part_num=1, batch_size=2)
    return {
        "jsonl": partial(read_jsonl, folder / "lines.jsonl"),
        "part files that read ahead": parts.stream,
    }


def _check_moves(make):
    """Move a stream to many positions with a begun iterator; each time the right items follow."""
    right = list(make().and_return())
    moved = make().and_return()
    states = [moved.state_dict()]
    states += [moved.state_dict() for _ in zip(range(5), moved, strict=False)]
    for read in (1, 3):
        for target, state in enumerate(states[: len(right)]):
            stream = make().and_return()
            reader = iter(stream)
            assert [next(reader) for _ in range(read)] == right[:read]
            stream.load_state_dict(state)
            assert next(reader) == right[target]
            resumed = make().and_return()
            resumed.load_state_dict(stream.state_dict())
            assert list(resumed) == right[target + 1 :]
            stream.close()
            assert [*reader] == right[target + 1 :]
    stream = make().and_return()
    reader = iter(stream)
    first = [next(reader) for _ in range(4)]
    stream.reset(reset_rng=True)
    assert [*first, *reader] == [*right[:4], *right]


@pytest.mark.slow
@each("name", STAGES)
def test_an_iterator_goes_on_where_its_stream_was_moved(name):
    _check_moves(STAGES[name])


def test_an_iterator_over_files_goes_on_where_its_stream_was_moved(tmp_path):
    for make in _files(tmp_path).values():
        _check_moves(make)


@pytest.mark.slow
def test_an_iterator_over_worker_processes_goes_on_where_its_stream_was_moved():
    stream = _numbers().map(_tenfold).workers(2).and_return()
    reader = iter(stream)
    state = stream.state_dict()
    assert [next(reader), next(reader)] == [10, 20]
    stream.load_state_dict(state)
    assert next(reader) == 10
    stream.reset()
    assert list(reader) == [number * 10 for number in range(1, 21)]


def test_iterators_share_the_position_after_a_move():
    stream = _numbers().shuffle(4).and_return()
    right = list(_numbers().shuffle(4).and_return())
    old = iter(stream)
    next(old)
    stream.reset(reset_rng=True)
    new = iter(stream)
    assert [next(new), next(old), next(new), next(old), *new] == right


def test_a_stream_can_be_moved_many_times_between_two_items():
    stream = _numbers().prefetch(2).and_return()
    state = stream.state_dict()
    readers = [iter(stream) for _ in range(4)]
    assert [next(one) for one in readers[:3]] == [1, 2, 3]
    for _ in range(2):
        stream.reset()
        stream.close()
        stream.load_state_dict(state)
        assert next(readers[0]) == 1
        stream.close()
        stream.reset()
    readers[1].close()
    assert [next(one) for one in (readers[0], readers[2], readers[3])] == [1, 2, 3]
    assert list(stream) == list(range(4, 21))


def test_a_stream_of_a_stream_moves_alone():
    inner = _numbers(4).and_return()
    source = read_iterator(iter(inner), lambda one: one, False, skip_pickling_check=True)
    outer = iter(source.and_return())
    assert [next(outer), next(outer)] == [1, 2]
    inner.reset()
    assert list(outer) == [1, 2, 3, 4]


def test_an_iterator_that_has_ended_stays_ended():
    stream = _numbers(2).and_return()
    reader = iter(stream)
    assert list(reader) == [1, 2]
    stream.reset()
    assert list(reader) == []
    assert list(stream) == [1, 2]


def _running():
    threads = [one for one in threading.enumerate() if one.name.startswith("stream-")]
    return len(threads) + len(multiprocessing.active_children())


def _waits_until_none_runs():
    end = time.monotonic() + _WAIT_SECONDS
    while _running() and time.monotonic() < end:
        time.sleep(0.01)
    return not _running()


READ_AHEAD = {
    "prefetch": lambda: _numbers(1000).map(_tenfold).prefetch(8),
    "threads": lambda: _numbers(1000).map(_tenfold, num_parallel_calls=4),
    "event loop": lambda: _numbers(1000).map(_tenfold_later, num_parallel_calls=4),
    "workers": lambda: _numbers(1000).map(_tenfold).workers(2),
    "below others": lambda: DataPipeline.zip([_numbers(99).prefetch(2).shuffle(9)]).bucket(2),
}


@pytest.mark.slow
@each("name", READ_AHEAD)
def test_close_stops_what_reads_ahead_although_an_iterator_is_held(name):
    stream = READ_AHEAD[name]().and_return()
    right = list(READ_AHEAD[name]().and_return())
    reader = iter(stream)
    first = [next(reader) for _ in range(3)]
    assert _running()
    stream.close()
    assert _waits_until_none_runs()
    assert [*first, *reader] == right


@each("call", ["state_dict", "reset", "close"])
def test_a_call_while_an_item_is_read_is_refused(call):
    def function(item):
        getattr(stream, call)()
        return item

    stream = _numbers().map(function).and_return()
    with pytest.raises(DataPipelineError, match=rf"{call}\(\) was called while the stream reads"):
        next(iter(stream))


class _OwnError(BaseException):
    pass


ERRORS = [KeyboardInterrupt, SystemExit, GeneratorExit, _OwnError]


def _failing(error):
    def function(item):
        if item == 5:
            raise error
        return item

    async def coroutine(item):
        return function(item)

    numbers = _numbers()
    return [
        numbers.map(function),
        numbers.map(function).prefetch(3),
        numbers.map(function).prefetch(3).bucket(1).map(lambda items: items[0]).prefetch(2),
        numbers.map(function, num_parallel_calls=2),
        numbers.map(function, num_parallel_calls=2).prefetch(3),
        numbers.map(coroutine, num_parallel_calls=2),
        numbers.yield_from(lambda item: read_sequence([function(item)])).prefetch(3),
        numbers.map(function).workers(2),
    ]


@pytest.mark.slow
@each("error", ERRORS)
def test_an_error_that_no_stream_may_skip_reaches_the_reader_after_the_items_before_it(error):
    for builder in _failing(error):
        stream, found = builder.and_return(on_error="skip"), []
        with pytest.raises(error):
            for item in stream:
                found.append(item)  # noqa: PERF402 - an error follows
        assert found == [1, 2, 3, 4]
        with pytest.raises(DataPipelineError, match="an earlier"):
            next(iter(stream))


def test_a_cancelled_call_reaches_the_reader_of_a_thread_that_reads_ahead():
    stream = _failing(asyncio.CancelledError)[1].and_return()
    with pytest.raises(asyncio.CancelledError):
        list(stream)


class _WithoutFinalState:
    """An iterator whose state cannot be taken at its end."""

    def __init__(self):
        self.items = iter(range(3))
        self.has_ended = False

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self.items)
        except StopIteration:
            self.has_ended = True
            raise

    def state_dict(self):
        if self.has_ended:
            raise OSError("no state at the end")
        return {}

    def load_state_dict(self, state):
        pass


def test_a_state_that_cannot_be_taken_at_the_end_is_an_error_of_the_reader():
    source = read_iterator(_WithoutFinalState(), lambda one: one, False, skip_pickling_check=True)
    reader = iter(source.prefetch(2).and_return())
    assert [next(reader) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="no state at the end"):
        next(reader)
