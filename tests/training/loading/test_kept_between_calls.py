"""States of streams whose functions keep something between two calls: they can be loaded."""

import functools
import gc
import json
import random
import weakref
from itertools import islice

import pytest

from dagster_dataops import (
    CheckpointableReadingServiceInterface,
    DataLoader2,
    MultiProcessingReadingService,
    ReadingServiceInterface,
    SequentialReadingService,
    read_iterator,
    read_sequence,
)
from dagster_dataops.errors import StreamStateError
from tests.each import each

CACHE = {}
COUNT = 0
MODEL = None


class _LazyModel:
    model = None

    def __call__(self, item):
        if self.model is None:
            self.model = {"factor": 10}
        return item * self.model["factor"]


class _Cached:
    def __init__(self):
        self.cache = {}

    def __call__(self, item):
        return self.cache.setdefault(item, item * 10)


class _Counting:
    _calls = 0

    def __call__(self, item):
        self._calls += 1
        return item * 10

    def method(self, item):
        return self(item)


class _WithSlots:
    __slots__ = ("seen",)

    def __init__(self):
        self.seen = []

    def __call__(self, item):
        self.seen.append(item)
        return item * 10


class _OnItsClass:
    calls = 0

    def __call__(self, item):
        type(self).calls += 1
        return item * 10


def _with_global(item):
    return CACHE.setdefault(item, item * 10)


def _counting_globally(item):
    global COUNT  # noqa: PLW0603 - this is what is tested
    COUNT += 1
    return item * 10


def _loading_globally(item):
    global MODEL  # noqa: PLW0603 - this is what is tested
    MODEL = MODEL or {"factor": 10}
    return item * MODEL["factor"]


def _with_default(item, seen=[]):  # noqa: B006 - this is what is tested
    seen.append(item)
    return item * 10


def _with_attribute(item):
    _with_attribute.seen = item
    return item * 10


def _closure():
    seen = []

    def function(item):
        seen.append(item)
        return item * 10

    return function


def _nonlocal():
    calls = 0

    def function(item):
        nonlocal calls
        calls += 1
        return item * 10

    return function


def _with_random():
    generator = random.Random(1)

    def function(item):
        generator.random()
        return item * 10

    return function


def _outer():
    inner = _Counting()
    return lambda item: inner(item) + 0


FUNCTIONS = {
    "a model loaded at the first call": _LazyModel,
    "a cache": _Cached,
    "a private counter": _Counting,
    "a method": lambda: _Counting().method,
    "a partial": lambda: functools.partial(_Counting().method),
    "slots": _WithSlots,
    "its class": _OnItsClass,
    "a dict of its module": lambda: _with_global,
    "a counter of its module": lambda: _counting_globally,
    "a model of its module": lambda: _loading_globally,
    "a default": lambda: _with_default,
    "an attribute of a function": lambda: _with_attribute,
    "a list of its closure": _closure,
    "a counter of its closure": _nonlocal,
    "a random generator": _with_random,
    "an object in a closure": _outer,
    "lru_cache": lambda: functools.lru_cache(lambda item: item * 10),
    "several": lambda: [_Counting(), lambda item: item],
}


def _as_in_a_new_process():
    global COUNT, MODEL
    CACHE.clear()
    COUNT, MODEL, _OnItsClass.calls = 0, None, 0
    _with_default.__defaults__[0].clear()
    vars(_with_attribute).clear()


def _saved_and_resumed(make, count=2):
    """Return the rest of what a new process reads that loads the state after ``count`` items."""
    _as_in_a_new_process()
    stream = make()
    reader = iter(stream)
    for _ in range(count):
        next(reader)
    state = json.loads(json.dumps(stream.state_dict()))
    again = json.loads(json.dumps(stream.state_dict()))
    assert state == again
    _as_in_a_new_process()
    resumed = make()
    resumed.load_state_dict(state)
    rest = list(resumed)
    resumed.load_state_dict(state)
    assert list(resumed) == rest
    return rest


def _numbers():
    return read_sequence([1, 2, 3, 4])


STAGES = {
    "map": lambda function: _numbers().map(function),
    "threads": lambda function: _numbers().map(function, num_parallel_calls=2),
    "prefetch": lambda function: _numbers().map(function).prefetch(2),
    "below others": lambda function: _numbers().map(function).shuffle(1).bucket(1).map(_first),
}


def _first(items):
    return items[0]


@each("name", FUNCTIONS)
def test_a_state_of_a_stream_does_not_depend_on_what_a_function_keeps(name):
    for stage in STAGES.values():
        assert _saved_and_resumed(lambda: stage(FUNCTIONS[name]()).and_return()) == [30, 40]  # noqa: B023


@each("name", FUNCTIONS)
def test_a_state_of_a_loader_does_not_depend_on_what_a_function_keeps(name):
    make = FUNCTIONS[name]
    assert _saved_and_resumed(lambda: DataLoader2(_numbers().map(make()))) == [30, 40]


@pytest.mark.parametrize("name", ["a cache", "a list of its closure"])
def test_a_state_goes_from_workers_to_none_and_back(name):
    def loader(workers):
        stream = _numbers().map(FUNCTIONS[name]())
        return DataLoader2(stream, reading_service=MultiProcessingReadingService(workers))

    for saving, loading in ((0, 2), (2, 0)):
        with loader(saving) as first, loader(loading) as second:
            reader = iter(first)
            next(reader)
            second.load_state_dict(first.state_dict())
            assert list(second) == [20, 30, 40]


def _filtered(counting):
    return _numbers().filter(lambda item: counting(item) > 10)


OTHER_STAGES = {
    "filter": _filtered,
    "yield_from": lambda counting: _numbers().yield_from(
        lambda item: read_sequence([counting(item)])
    ),
    "dynamic_bucket": lambda counting: _numbers().dynamic_bucket(1, counting),
    "pack": lambda counting: _numbers().pack_windows(
        1, lambda window: [[counting(window[0])]], list
    ),
    "random map": lambda counting: _numbers().map(lambda item, random: counting(item), random=True),
    "read_iterator": lambda counting: read_iterator(
        iter([]), lambda _: iter([counting(one) for one in range(4)]), infinite=False
    ),
}


@each("name", OTHER_STAGES)
def test_the_functions_of_every_stage_are_seen_before_their_first_call(name):
    make = OTHER_STAGES[name]
    right = list(make(_Counting()).and_return())[1:]
    assert _saved_and_resumed(lambda: make(_Counting()).and_return(), 1) == right


def test_another_function_is_refused_as_before():
    stream = _numbers().map(_Cached()).and_return()
    list(islice(stream, 2))
    other = _Cached()
    other.cache[1] = 5
    for function in (_Counting(), other):
        with pytest.raises(StreamStateError, match=r"stage 2 \(map\) differs in its code"):
            _numbers().map(function).and_return().load_state_dict(stream.state_dict())


def test_streams_of_one_builder_have_one_identity():
    builder = _numbers().map(_Cached())
    stream = builder.and_return()
    list(islice(stream, 2))
    again = builder.and_return()
    again.load_state_dict(stream.state_dict())
    assert list(again) == [30, 40]
    with DataLoader2(builder) as loader:
        list(loader)
        first = loader.state_dict()
    with DataLoader2(builder) as loader:
        loader.load_state_dict(first)


def test_another_stream_of_the_same_function_has_its_states():
    _as_in_a_new_process()
    for function in (_LazyModel(), _Cached(), _closure(), _loading_globally, _Counting().method):
        stream = _numbers().map(function).and_return()
        list(islice(stream, 2))
        state = stream.state_dict()
        again = _numbers().map(function).and_return()
        again.load_state_dict(state)
        assert list(again) == [30, 40]
        assert again.state_dict()["stages"] == state["stages"]


@each("name", FUNCTIONS)
@pytest.mark.parametrize("count", [None, 2])
def test_a_stream_that_is_made_anew_after_another_was_read_has_states_for_other_processes(
    name, count
):
    _as_in_a_new_process()
    function = FUNCTIONS[name]()
    for _ in range(3):
        earlier = _numbers().map(function).and_return()
        list(islice(iter(earlier), count))
    stream = _numbers().map(function).and_return()
    reader = iter(stream)
    next(reader)
    state = stream.state_dict()
    _as_in_a_new_process()
    resumed = _numbers().map(FUNCTIONS[name]()).and_return()
    resumed.load_state_dict(state)
    assert list(resumed) == [20, 30, 40]


def test_a_function_that_the_program_has_changed_is_another_one():
    function = _LazyModel()
    stream = _numbers().map(function).and_return()
    list(islice(stream, 2))
    state = stream.state_dict()
    function.model["factor"] = 11
    with pytest.raises(StreamStateError, match="differs in its code"):
        _numbers().map(function).and_return().load_state_dict(state)


@pytest.mark.slow
def test_functions_are_not_kept_alive():
    function = _LazyModel()
    stream = _numbers().map(function).and_return()
    next(iter(stream))
    stream.state_dict()
    reference = weakref.ref(function)
    del function, stream
    gc.collect()
    assert reference() is None


def test_what_a_function_has_changed_is_said_once(caplog):
    stream = _numbers().map(_Cached()).and_return()
    stream.state_dict()
    reader = iter(stream)
    assert "stage 2 (map)" not in caplog.text
    for _ in range(2):
        next(reader)
        stream.state_dict()
    assert caplog.text.count("stage 2 (map): its function has changed what it keeps") == 1


def test_a_function_that_keeps_nothing_is_not_named(caplog):
    stream = _numbers().map(lambda item: item).and_return()
    next(iter(stream))
    stream.state_dict()
    assert "has changed" not in caplog.text


# ---------------------------------------------------------------- services


class _Service(CheckpointableReadingServiceInterface):
    """A service that counts epochs and calls, and whose own functions are in the stream."""

    epochs = 0

    def __init__(self, how, factor=10):
        self.how, self.factor, self.calls = how, factor, 0

    def initialize(self, datapipe):
        return datapipe.map(HOLDERS[self.how](self))

    def times(self, item):
        self.calls += 1
        return item * self.factor

    def initialize_iteration(self, seed_generator, iter_reset_fn=None):
        self.epochs += 1

    def checkpoint(self):
        return str(self.epochs).encode()

    def restore(self, datapipe, serialized_state):
        self.epochs = int(serialized_state)
        return self.initialize(datapipe)


def _around(inner):
    return lambda item: inner(item) + 0


HOLDERS = {
    "method": lambda service: service.times,
    "partial": lambda service: functools.partial(service.times),
    "lambda": lambda service: lambda item: service.times(item) + 0,
    "closure of a closure": lambda service: _around(lambda item: service.times(item) + 0),
    "several": lambda service: [service.times, lambda item: item],
}


@each("how", HOLDERS)
def test_a_service_counts_as_it_was_given(how):
    for around in (lambda one: one, SequentialReadingService):
        with DataLoader2(_numbers(), reading_service=around(_Service(how))) as loader:
            states = [[loader.state_dict() for _ in loader] for _ in range(2)]
        for epoch in states:
            with DataLoader2(_numbers(), reading_service=around(_Service(how))) as again:
                again.load_state_dict(json.loads(json.dumps(epoch[1])))
                assert list(again) == [30, 40]
                assert again.state_dict()["epoch"] == epoch[1]["epoch"] + 1
            other = DataLoader2(_numbers(), reading_service=around(_Service(how, factor=11)))
            with other, pytest.raises(StreamStateError, match="differs in its code"):
                other.load_state_dict(epoch[1])


def test_a_plain_service_that_counts_its_calls_goes_on():
    class Counting(ReadingServiceInterface):
        seen = {}  # noqa: RUF012 - replaced, never changed

        def initialize(self, datapipe):
            return datapipe.map(self.fetch)

        def fetch(self, item):
            self.seen = {**self.seen, item: 1}
            return item * 10

    make = lambda: DataLoader2(_numbers(), reading_service=Counting())  # noqa: E731
    assert _saved_and_resumed(make) == [30, 40]
