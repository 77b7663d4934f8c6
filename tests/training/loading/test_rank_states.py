"""Tests of dagster_dataops.training.loading.rank_states."""

import json
from collections import Counter
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dagster_dataops import (
    DataLoader2,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    crude,
    merged_states,
    read_sequence,
)
from dagster_dataops.errors import StreamDefinitionError, StreamStateError
from tests.each import each
from tests.training.filestores.shards import write_tar

STATE = DataLoader2(read_sequence([1, 2])).state_dict()


def test_equal_states_are_the_state_of_each():
    assert merged_states([STATE, dict(STATE)]) == STATE
    assert merged_states([STATE]) is not STATE


def test_no_state_cannot_be_merged():
    with pytest.raises(StreamStateError, match="no states"):
        merged_states([])


def test_the_first_rank_that_differs_is_named_with_what_differs():
    other = {**STATE, "epoch": 1}
    with pytest.raises(StreamStateError, match="the epoch of rank 0 is 0, that of rank 2 is 1"):
        merged_states([STATE, STATE, other, other])
    with pytest.raises(StreamStateError, match="service of rank 0 is null"):
        merged_states([STATE, {**STATE, "service": "x" * 1000}])


# ---------------------------------------------------------------- other numbers of ranks


def _twice(number):
    return read_sequence([number, number + 1000])


def _groups(window):
    return [window[:2], window[2:]]


FAILING = "fails on a first item below 3"
STAGES = {
    "map": lambda stream: stream.map(lambda item: item),
    "random map": lambda stream: stream.map(lambda item, random: item, random=True),
    "threads": lambda stream: stream.map(lambda item: item, num_parallel_calls=2),
    "threads, any order": lambda stream: stream.map(
        lambda item: item, num_parallel_calls=2, deterministic=False
    ),
    FAILING: lambda stream: stream.map(_checked),
    "filter": lambda stream: stream.filter(lambda item: _number(item) % 5 != 3),
    "filter nothing": lambda stream: stream.filter(lambda item: True),
    "filter of one rank": lambda stream: stream.filter(lambda item: _number(item) % 4 > 0),
    "shuffle": lambda stream: stream.shuffle(3),
    "shuffle all": lambda stream: stream.shuffle(0),
    "shuffle none": lambda stream: stream.shuffle(1),
    "bucket": lambda stream: stream.bucket(2),
    "bucket without the rest": lambda stream: stream.bucket(3, drop_remainder=True),
    "dynamic bucket": lambda stream: stream.dynamic_bucket(2, lambda item: 1),
    "bucket by length": lambda stream: stream.bucket_by_length([(2, 9), (1, 9999)], "[0]"),
    "pack": lambda stream: stream.pack_windows(3, _groups, list),
    "yield_from": lambda stream: stream.yield_from(_twice),
    "take": lambda stream: stream.take(9),
    "skip": lambda stream: stream.skip(2),
    "repeat": lambda stream: stream.repeat(2),
    "prefetch": lambda stream: stream.prefetch(2),
    "shard": lambda stream: stream.shard(0, 2),
}
DIRECTLY = ["yield_from", "bucket by length"]  # items must be numbers, or lists


def _checked(item):
    if _number(item) < 3:
        raise ValueError(item)
    return item


def _number(item):
    return _number(item[0]) if isinstance(item, list) else item


def _flat(items):
    return [one for item in items for one in (_flat(item) if isinstance(item, list) else [item])]


def _stream(names, count):
    numbers = read_sequence(list(range(1, count + 1)))
    if "bucket by length" in names:
        numbers = numbers.map(lambda number: [number])
    stream = numbers.sharding_filter()
    for name in names:
        stream = STAGES[name](stream)
    return stream


def _loader(names, count, rank, number, options):
    service = DistributedReadingService(rank, number)
    return DataLoader2(_stream(names, count).and_return(**options), reading_service=service)


def _read(names, count, number, taken, options):
    """Return the items of all ranks, those of their first steps, and their states."""
    everything, heads, states = [], [], []
    for rank in range(number):
        with _loader(names, count, rank, number, options) as whole:
            everything += list(whole)
        with _loader(names, count, rank, number, options) as loader:
            heads += list(islice(loader, taken))
            states.append(json.loads(json.dumps(loader.state_dict())))
    return everything, heads, states


def _rest(names, count, number, state, options):
    found = []
    for rank in range(number):
        with _loader(names, count, rank, number, options) as loader:
            loader.load_state_dict(state)
            found += list(loader)
    return found


def _is_exact(everything, heads, rest):
    return Counter(_flat([*heads, *rest])) == Counter(_flat(everything))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted({*STAGES} - {*DIRECTLY, FAILING})), max_size=3)
    | st.sampled_from(DIRECTLY).map(lambda name: [name]),
    count=st.integers(0, 25),
    number=st.integers(1, 3),
    other=st.integers(1, 3),
    taken=st.integers(0, 6),
    is_merged=st.booleans(),
)
def test_a_state_goes_on_with_any_number_of_ranks_exactly_or_is_refused(
    names, count, number, other, taken, is_merged
):
    everything, heads, states = _read(names, count, number, taken, {})
    assume(len(heads) == number * taken)  # else some ranks are in the next epoch
    try:
        state = merged_states(states) if is_merged else states[0]
        rest = _rest(names, count, other, state, {})
    except StreamStateError:
        assert number > 1 or other > 1
        return
    if taken or number == other:  # a state from before the first item is no part of an epoch
        assert _is_exact(everything, heads, rest)


ALWAYS = ["map", "random map", "threads", "bucket", "prefetch", "shuffle none", "skip"]
SAME_NUMBER = ["shuffle", "shuffle all", "bucket without the rest", "pack", "yield_from", "take"]


@each("name", ALWAYS)
def test_a_state_goes_on_with_any_number_of_ranks(name):
    everything, heads, states = _read([name], 24, 2, 2, {})
    assert states[0] == states[1]
    assert "ranks" not in states[0]
    for other in (1, 2, 3):
        assert _is_exact(everything, heads, _rest([name], 24, other, states[0], {}))


@each("name", SAME_NUMBER)
def test_a_state_goes_on_with_the_same_number_of_ranks_alone(name):
    everything, heads, states = _read([name], 24, 2, 2, {})
    state = merged_states(states)
    assert _is_exact(everything, heads, _rest([name], 24, 2, state, {}))
    for other in (1, 3):
        with pytest.raises(StreamStateError, match=f"taken with 2 ranks.* here .* {other} rank"):
            _rest([name], 24, other, state, {})
    _, _, alone = _read([name], 24, 1, 2, {})
    with pytest.raises(StreamStateError, match="taken with 1 rank, and here are 2 ranks"):
        _rest([name], 24, 2, alone[0], {})


def _samples(folder, count):
    write_tar(folder / "samples.tar", [(f"{n:03}.txt", b"%03d" % n) for n in range(count)])
    return folder


def _cooked(sample):
    return {"n": int(sample["txt"])}


def _cooked_twice(sample):
    return [{"n": int(sample["txt"])}, {"n": int(sample["txt"]) + 1000}]


def _cooking(source, cooker, rank, number, workers):
    services = DistributedReadingService(rank, number), MultiProcessingReadingService(workers)
    stream = source.sharding_filter().cook(cooker).prefetch(2)
    return DataLoader2(stream, reading_service=SequentialReadingService(*services))


def _heads(loaders, taken):
    """Return the first items of all ranks, and their one state."""
    heads, states = [], []
    for loader in loaders:
        with loader:
            heads += [one["n"] for one in islice(loader, taken)]
            states.append(loader.state_dict())
    return heads, merged_states(states)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("cooker", "taken"), [(_cooked, 1), (_cooked, 3), (_cooked_twice, 2)])
def test_cooked_samples_go_on_with_any_number_of_ranks(tmp_path, cooker, taken, workers):
    source = crude(_samples(tmp_path, 12))
    everything = Counter(one["n"] for one in DataLoader2(source.cook(cooker)))
    heads, state = _heads([_cooking(source, cooker, rank, 2, workers) for rank in (0, 1)], taken)
    for other in (1, 2, 3):
        rest = []
        for rank in range(other):
            with _cooking(source, cooker, rank, other, workers) as loader:
                loader.load_state_dict(state)
                rest += [one["n"] for one in loader]
        assert Counter([*heads, *rest]) == everything


@pytest.mark.parametrize("workers", [0, 2])
def test_records_of_one_sample_are_not_divided_among_other_ranks(tmp_path, workers):
    source = crude(_samples(tmp_path, 12))
    loaders = [_cooking(source, _cooked_twice, rank, 2, workers) for rank in (0, 1)]
    _, state = _heads(loaders, 3)
    with _cooking(source, _cooked_twice, 0, 2, workers) as loader:
        loader.load_state_dict(state)
    for other in (1, 3):
        loader = _cooking(source, _cooked_twice, 0, other, workers)
        with loader, pytest.raises(StreamStateError, match="taken with 2 ranks.*each .* cook"):
            loader.load_state_dict(state)


@each("name", [*SAME_NUMBER, *ALWAYS])
def test_the_start_of_an_epoch_is_a_state_for_any_number_of_ranks(name):
    with _loader([name], 24, 0, 2, {}) as loader:
        list(loader)
        state = loader.state_dict()
    for number in (1, 2, 3):
        with _loader([name], 24, 0, number, {}) as loader:
            loader.load_state_dict(state)
            assert loader.state_dict() == state
            assert list(loader)


OUT_OF_STEP = [
    (["filter nothing"], {}),
    (["repeat"], {}),
    (["map"], {"on_error": "skip"}),
    (["bucket", "map"], {"on_error": "skip"}),
]


@each("case", OUT_OF_STEP)
def test_a_state_of_a_rank_that_may_be_out_of_step_is_for_this_rank(case):
    names, options = case
    everything, heads, states = _read(names, 24, 2, 2, options)
    assert [one["ranks"]["rank"] for one in states] == [0, 1]
    with pytest.raises(StreamStateError, match=r"is that of rank 0 of 2, this is rank 1 of 2"):
        _rest(names, 24, 2, states[0], options)
    with pytest.raises(StreamStateError, match=r"is that of rank 0 of 2, this is rank 0 of 1"):
        _rest(names, 24, 1, states[0], options)
    own = []
    for rank in range(2):
        with _loader(names, 24, rank, 2, options) as loader:
            loader.load_state_dict(states[rank])
            own += list(loader)
    assert _is_exact(everything, heads, own)
    merged = merged_states(states)
    for other in (1, 2, 3):
        assert _is_exact(everything, heads, _rest(names, 24, other, merged, options))


def test_lists_that_may_be_dropped_are_those_of_the_same_number_of_ranks():
    names = ["bucket", "filter nothing"]
    _, _, states = _read(names, 24, 2, 2, {})
    _rest(names, 24, 2, merged_states(states), {})
    with pytest.raises(StreamStateError, match="taken with 2 ranks, and here is 1 rank"):
        _rest(names, 24, 1, merged_states(states), {})


@each("other", [1, 2, 3])
def test_failed_lists_neither_lose_nor_double_others_with_another_number_of_ranks(other):
    """Both ranks have read a list that fails, so that their states are equal."""
    names, options = ["bucket", FAILING], {"on_error": "skip"}
    _, heads, states = _read(names, 24, 2, 2, options)
    rest = _rest(names, 24, other, merged_states(states), options)

    assert sorted(_flat([*heads, *rest])) == list(range(5, 25))  # without [1, 3] and [2, 4]


def test_states_are_merged_in_the_order_of_their_ranks():
    _, _, states = _read(["filter nothing"], 24, 2, 2, {})
    with pytest.raises(StreamStateError, match="at place 0 of 2 is that of rank 1 of 2"):
        merged_states(states[::-1])
    with pytest.raises(StreamStateError, match="at place 0 of 1 is that of rank 0 of 2"):
        merged_states(states[:1])


def test_a_state_that_does_not_say_its_ranks_is_loaded_with_a_warning(caplog):
    """Versions before 0.3 wrote such states."""
    _, _, states = _read(["shuffle"], 24, 2, 2, {})
    del states[0]["ranks"]
    _rest(["shuffle"], 24, 2, states[0], {})
    assert "does not say how many ranks took it" in caplog.text


def test_ranks_of_items_in_no_order_are_refused():
    numbers = read_sequence([1, 2, 3]).map(abs, num_parallel_calls=2, deterministic=False)
    for stream in (numbers, numbers.sharding_filter(), numbers.sharding_round_robin_dispatch()):
        with pytest.raises(StreamDefinitionError, match="another order on each rank"):
            iter(DataLoader2(stream, reading_service=DistributedReadingService(0, 2)))
        assert sorted(DataLoader2(stream)) == [1, 2, 3]
