"""Tests that a stream is the same, read by any number of worker processes."""

import gc
import json
import multiprocessing
import os
import threading
from itertools import islice

import pytest

from dagster_dataops import DataPipeline, read_iterator, read_jsonl, read_sequence
from dagster_dataops.errors import DataPipelineError, StreamDefinitionError, WorkerError
from tests.streams.sequences import numbers
from tests.streams.test_resuming import STREAMS
from tests.warm_python import WarmPython

COUNTS = (1, 2, 3)
RESUMES = f"""
from dagster_dataops.testing import assert_resumes_anywhere
from {__name__} import MARKED, STREAMS

assert_resumes_anywhere"""


def odd(item):
    return item % 2 == 1


def double(item):
    return 2 * item


def repeated(item):
    return read_sequence([item] * (item % 3))


def drawn(item, random):
    return [item, random.random()]


def few(items=10):
    return numbers(*range(items))


MARKED = {
    "map": lambda: few().sharding_filter().map(double),
    "dispatch": lambda: few().sharding_round_robin_dispatch().map(double).filter(odd),
    "filter before": lambda: few().filter(odd).sharding_filter().map(double),
    "shuffled before": lambda: few().shuffle(5).sharding_filter().map(double).filter(odd),
    "bucket behind": lambda: few().sharding_filter().map(double).bucket(3).map(sum),
    "expanded": lambda: few().sharding_filter().yield_from(repeated).map(double),
    "expanded twice": lambda: few(7).sharding_filter().yield_from(repeated).yield_from(repeated),
    "random": lambda: few().filter(odd).map(drawn, random=True),
    "random expanded": lambda: (
        few()
        .sharding_round_robin_dispatch()
        .filter(odd)
        .yield_from(repeated)
        .map(drawn, random=True)
    ),
    "epochs": lambda: few(5).shuffle(0).sharding_filter().map(drawn, random=True).repeat(2),
    "concat": lambda: DataPipeline.concat(few(5).map(double), few(5).shuffle(4).map(double)),
    "zip": lambda: DataPipeline.zip(
        few().sharding_filter().map(double), few().sharding_filter().map(drawn, random=True)
    ).map(str),
    "no functions": lambda: few().bucket(3),
    "only a mark": lambda: few().sharding_filter(),
    "shuffled behind": lambda: few().sharding_filter().shuffle(0),
}


@pytest.fixture(scope="module")
def small_process():
    """A process that forks faster than that of the tests, which has ten times its memory."""
    with WarmPython(__name__) as warm:
        yield warm


@pytest.mark.slow
@pytest.mark.parametrize("name", MARKED)
def test_a_stream_resumes_at_any_item_with_any_number_of_workers(small_process, tmp_path, name):
    small_process.run(f"{RESUMES}(MARKED[{name!r}], workers=(1, 3))", folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_every_kind_of_stream_is_the_same_with_workers(small_process, tmp_path, name):
    small_process.run(f"{RESUMES}(STREAMS[{name!r}], workers=(2,), limit=9)", folder=tmp_path)


@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
@pytest.mark.parametrize("count", COUNTS)
def test_records_of_files_have_the_states_of_one_process(source, mark, count):
    def made():
        return getattr(read_jsonl(source), mark)().map(lambda record: record["n"]).filter(odd)

    def read(stream):
        return [(item, json.dumps(stream.state_dict())) for item in stream]

    assert read(made().workers(count).and_return()) == read(made().and_return())


def test_a_finished_stream_can_be_read_by_workers():
    stream = few().map(drawn, random=True).and_return(seed=7, on_error="skip")
    assert list(stream.workers(2)) == list(stream)


@pytest.mark.parametrize("count", COUNTS)
def test_the_items_before_a_failure_come_first(count):
    def failing(item):
        if item == 5:
            raise ValueError("five")
        return item

    stream = few().sharding_filter().map(failing).workers(count).and_return()
    found = []
    with pytest.raises(ValueError, match="five") as caught:
        found.extend(iter_into(found, stream))
    assert found == [0, 1, 2, 3, 4]
    notes = "".join(caught.value.__notes__)
    assert "stage map" in notes
    assert "in failing" in notes
    assert stream.is_broken


def iter_into(found, stream):
    for item in stream:
        found.append(item)  # kept when the stream fails
    return ()


@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
def test_a_source_that_fails_gives_the_items_before_first(tmp_path, mark):
    path = tmp_path / "torn.jsonl"
    path.write_text("".join(f'{{"n":{n}}}\n' for n in range(30)) + "{torn\n")
    stream = getattr(read_jsonl(path, block_size=1024), mark)().map(len).workers(2)
    alone = getattr(read_jsonl(path, block_size=1024), mark)().map(len)
    found, expected = [], []
    for into, one in ((found, stream), (expected, alone)):
        with pytest.raises(DataPipelineError, match="line 31"):
            iter_into(into, one.and_return())
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
def test_failed_items_are_counted_stored_and_limited_as_with_one_process(tmp_path, mark):
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f'{{"n":{n}}}\n' if n % 7 else "{torn\n" for n in range(40)))

    def failing(record):
        if record["n"] % 5 == 3:
            raise ValueError(record["n"])
        return record["n"]

    def made(count):
        return getattr(read_jsonl(path), mark)().map(failing).workers(count)

    def outcome(count):
        stream = made(count).and_return(on_error="quarantine")
        read = [(item, stream.state_dict()["position"]) for item in stream]
        return read, stream.errors, stream.state_dict()

    alone = made(0).and_return(on_error="quarantine")
    list(alone)
    parallel = made(3).and_return(on_error="quarantine")
    list(parallel)
    order = sorted(alone.quarantined, key=str)
    assert sorted(parallel.quarantined, key=str) == order
    assert outcome(3)[1:] == outcome(0)[1:]
    limited = made(2).and_return(on_error="skip", max_errors=3)
    with pytest.raises(DataPipelineError, match="more than max_errors=3"):
        list(limited)


def test_a_resumed_stream_counts_the_failures_of_its_source_on(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f'{{"n":{n}}}\n' if n % 7 else "{torn\n" for n in range(400)))

    def made(count):
        stream = read_jsonl(path, block_size=1024).sharding_filter().map(dict)
        return stream.workers(count).and_return(on_error="skip")

    begun = made(0)
    for _ in islice(begun, 150):
        pass
    state = begun.state_dict()
    list(begun)
    resumed = made(2)
    resumed.load_state_dict(state)
    list(resumed)
    assert resumed.state_dict() == begun.state_dict()
    assert resumed.errors == begun.errors == 58


def test_an_endless_stream_is_not_read_far_ahead(tmp_path):
    seen = tmp_path / "seen"
    seen.touch()

    def noted(item):
        with seen.open("a") as file:
            file.write(".")
        return item

    stream = DataPipeline.count().map(noted).workers(2, prefetch=2).and_return()
    assert list(islice(stream, 10)) == list(range(10))
    assert seen.stat().st_size <= 10 + 2 * 2 * 64
    assert stream.state_dict()["position"] == {"failed": 0, "inputs": [{"next": 10}]}


@pytest.mark.slow
def test_a_consumer_that_stops_early_leaves_no_process():
    before = multiprocessing.active_children()
    stream = DataPipeline.count().map(double).workers(2).and_return()
    for item in stream:
        if item > 10:
            break
    assert len(multiprocessing.active_children()) == len(before) + 2
    assert next(iter(stream)) == 14
    del stream
    gc.collect()
    assert multiprocessing.active_children() == before


@pytest.mark.slow
def test_a_reset_stream_starts_its_next_epoch_anew():
    def made(count):
        return few().shuffle(0).sharding_filter().map(double).workers(count).and_return()

    alone, parallel = made(0), made(2)
    for one in (alone, parallel):
        next(iter(one))
        one.reset()
    assert list(parallel) == list(alone)
    assert parallel.state_dict() == alone.state_dict()


@pytest.mark.slow
def test_streams_without_items_and_with_fewer_items_than_workers_end():
    assert list(numbers().map(double).workers(4)) == []
    assert list(numbers(1).sharding_filter().map(double).workers(5)) == [2]
    assert list(numbers(1).sharding_round_robin_dispatch().workers(5)) == [1]


def test_an_item_that_cannot_be_sent_is_an_error_at_its_place():
    def locked(item):
        return threading.Lock() if item == 2 else item

    stream = numbers(0, 1, 2, 3).map(locked).workers(2).and_return()
    found = []
    with pytest.raises(DataPipelineError, match=r"type lock cannot be sent .*lock"):
        iter_into(found, stream)
    assert found == [0, 1]


def test_local_functions_and_classes_can_be_used():
    class Point:
        def __init__(self, place):
            self.place = place

    made = list(numbers(1, 2).map(Point).workers(2))
    assert [one.place for one in made] == [1, 2]


class OddError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} {second}")
        self.second = second


def test_an_error_whose_constructor_takes_other_arguments_keeps_its_type():
    def failing(item):
        raise OddError("one", item)

    with pytest.raises(OddError, match="one 1") as caught:
        list(numbers(1).map(failing).workers(1))
    assert caught.value.second == 1
    assert any("In a worker process" in note for note in caught.value.__notes__)


def test_an_error_that_cannot_be_pickled_keeps_its_text():
    def failing(item):
        raise OddError("one", threading.Lock())

    with pytest.raises(DataPipelineError, match="OddError: one <unlocked"):
        list(numbers(1).map(failing).workers(1))


def test_an_iterator_that_cannot_be_copied_is_read_by_the_reading_process():
    source = read_iterator(iter(generated()), lambda given: given, False, skip_pickling_check=True)
    assert list(source.map(double).workers(2)) == [0, 2, 4, 6]


def generated():
    yield from range(4)


@pytest.mark.slow
def test_an_element_that_kills_workers_is_named():
    def killing(record):
        if record["id"] == "r7":
            os._exit(9)
        return record

    made = read_sequence([{"id": f"r{n}"} for n in range(12)]).sharding_filter().map(killing)
    stream = made.workers(2).and_return()
    found = []
    with pytest.raises(WorkerError, match=r"element 7 \(id 'r7'\) killed 3 .* exit code 9"):
        iter_into(found, stream)
    assert [one["id"] for one in found] == [f"r{n}" for n in range(7)]


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
def test_an_element_that_kills_workers_can_be_a_failed_item(mark):
    def killing(item):
        if item == 7:
            os._exit(9)
        return item

    stream = getattr(few(), mark)().map(killing).workers(2).and_return(on_error="quarantine")
    assert list(stream) == [*range(7), *range(8, 10)]
    assert [entry["item"] for entry in stream.quarantined] == [7]
    assert stream.errors == 1
    assert stream.state_dict()["failures"] == [1, 0]


@pytest.mark.slow
def test_workers_start_in_programs_with_threads():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert list(few().sharding_filter().map(double).workers(2)) == list(few().map(double))
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: few().workers(-1), "num_workers is -1"),
        (lambda: few().workers(1, prefetch=0), "prefetch is 0"),
        (lambda: few().workers(1).map(double).workers(2), "already has workers"),
        (lambda: few().workers(1).sharding_filter(), "behind all marks"),
        (lambda: few().map(drawn, random=True, num_parallel_calls=2), "one after another"),
    ],
)
def test_invalid_workers_are_refused_at_definition(make, says):
    with pytest.raises(StreamDefinitionError, match=says):
        make()
