"""States of other streams, and damaged states."""

import json
import re
from itertools import islice

import pytest

from dagster_dataops import DataPipeline, errors, list_files, read_jsonl, read_sequence
from tests.streams.sequences import numbers

count, constant = DataPipeline.count, DataPipeline.constant


def state_of(builder, items=2):
    stream = builder.and_return()
    for _ in islice(iter(stream), items):
        pass
    return json.loads(json.dumps(stream.state_dict()))


@pytest.mark.parametrize(
    ("kept", "other", "difference"),
    [
        (numbers(1, 2).map(abs), numbers(1, 2), "read_sequence > map > stream, here"),
        (numbers(1, 2), numbers(1, 3), r"stage 1 \(read_sequence\) differs in its data"),
        (numbers(1).map(abs), numbers(1).map(str), r"stage 2 \(map\) differs in its code"),
        (numbers(1).take(1), numbers(1).take(2), r"stage 2 \(take\) differs in its options"),
        (count().shuffle(3), count().shuffle(4), r"\(shuffle\) differs in its options"),
        (
            numbers(1).map(lambda x: x + 1),
            numbers(1).map(lambda x: x + 2),
            r"\(map\) differs in its code",
        ),
    ],
)
def test_a_state_of_another_stream_is_refused_with_the_difference(kept, other, difference):
    stream = other.and_return()
    with pytest.raises(errors.StreamStateError, match=difference):
        stream.load_state_dict(state_of(kept))
    assert next(iter(stream)) is not None


def test_a_changed_file_inside_another_stream_is_refused(folder):
    builder = list_files(folder, "*part1.jsonl").yield_from(read_jsonl)
    state = state_of(builder)
    (folder / "part1.jsonl").write_text('{"file":0}\n' * 30)
    stream = builder.and_return()
    stream.load_state_dict(state)

    with pytest.raises(errors.StreamStateError, match="other files"):
        next(iter(stream))


@pytest.mark.parametrize("damage", [None, {}, [], "x", {"version": 1}, {"version": 9}])
def test_an_object_that_is_not_a_state_is_refused(damage):
    stream = numbers(1, 2).and_return()
    if damage == {"version": 9}:
        damage = stream.state_dict() | damage
    with pytest.raises(errors.StreamStateError, match=re.compile("not the state|version 9")):
        stream.load_state_dict(damage)
    assert list(stream) == [1, 2]


@pytest.mark.parametrize("position", [None, "x", [], [1], {"a": 1}, [1, [2, 3]]])
def test_a_damaged_position_is_refused_and_the_stream_stays_where_it_is(position):
    builder = DataPipeline.sample(numbers(1, 2), numbers(3)).take(3).prefetch(1)
    stream = builder.and_return()
    first = next(iter(stream))
    with pytest.raises(errors.StreamStateError, match="position is damaged"):
        stream.load_state_dict(state_of(builder) | {"position": position})
    assert [first, *stream] == list(builder)


def test_items_that_json_cannot_hold_are_refused_and_named():
    stream = read_sequence([object()] * 3).bucket_by_length([(2, 1)], min_data_len=0).and_return()
    assert stream.state_dict()["position"]
    held = read_sequence([{1}, {2}, {3}]).bucket_by_length([(2, 1)]).and_return()
    next(iter(held))
    assert held.state_dict()
    odd = read_sequence([{1}, {2, 3}, {4, 5}]).bucket_by_length([(2, 1), (2, 2)]).and_return()
    next(iter(odd))
    with pytest.raises(errors.StreamStateError, match="contains a set"):
        odd.state_dict()
