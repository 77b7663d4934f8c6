"""Builders and the streams that are read."""

from itertools import islice

import pytest

from dagster_dataops import DataPipeline, read_iterator, read_sequence
from tests.each import each


def test_a_stream_used_twice_is_two_streams():
    source = read_sequence([1, 2]).and_return()
    next(iter(source))

    assert list(DataPipeline.concat(source, source)) == [1, 2, 1, 2]
    assert list(DataPipeline.zip([source, source])) == [[1, 1], [2, 2]]
    assert list(source) == [2]


def test_a_builder_never_changes():
    base = read_sequence([1, 2])
    tenfold, negative = base.map(lambda x: x * 10), base.map(lambda x: -x)

    assert [list(base), list(tenfold), list(negative)] == [[1, 2], [10, 20], [-1, -2]]
    assert list(base.and_return()) == list(base.and_return()) == [1, 2]


def test_all_iterators_of_a_pipeline_share_its_position():
    stream = read_sequence([1, 2, 3]).and_return()
    for item in stream:
        assert item == 1
        break
    assert list(stream) == [2, 3]
    assert list(stream) == []
    stream.reset()
    assert list(stream) == [1, 2, 3]


A, B = read_sequence([1, 2, 3]), read_sequence([8, 9])
COMBINATIONS = {
    "concat": [("A, B", "[A, B]"), ("pipelines=[A, B]", "A, B")],
    "round_robin": [
        ("[A, B], True", "A, B, stop_at_shortest=True"),
        ("[A, B], False, False", "A, B, allow_repeats=False"),
        ("pipelines=[A, B], stop_at_shortest=True", "[A, B], True"),
        ("(A, B)", "A, B"),
        ("iter([A, B]), True", "[A, B], True"),
    ],
    "sample": [
        ("[A, B], [0.7, 0.3], 5", "A, B, weights=[0.7, 0.3], seed=5"),
        ("[A, B], None, 5, False", "A, B, seed=5, allow_repeats=False"),
        ("pipelines=[A, B], weights=(0.7, 0.3), seed=5", "[A, B], [0.7, 0.3], 5"),
        ("[A, B], [0.7, 0.3], seed=5", "[A, B], [0.7, 0.3], 5"),
    ],
    "zip": [
        ("[A, B], ['x', 'y'], True", "A, B, names=['x', 'y'], zip_to_shortest=True"),
        ("[A, B], None, True, True, True", "A, B, zip_to_shortest=True, flatten=True"),
        ("pipelines=[A, B], zip_to_shortest=True", "[A, B], None, True"),
    ],
}


def evaluated(call):
    """Return the result of a call of a combination, given as text."""
    return eval(f"DataPipeline.{call}", globals())  # noqa: S307 - the code of the test


@each("name", COMBINATIONS)
def test_the_arguments_of_a_combination_are_given_by_position_or_name(name):
    for call, same in COMBINATIONS[name]:
        first, second = (evaluated(f"{name}({one})").and_return() for one in (call, same))
        assert list(first) == list(second)
        assert first.parts == second.parts


@each(
    "case",
    [
        ("round_robin([A], pipelines=[B])", "given by position and as pipelines"),
        ("sample([A, B], [1, 1], weights=[1, 2])", "weights is given by position and by name"),
        ("round_robin([A], True, True, 3)", "got 4 arguments; it takes .pipelines, stop_at_short"),
        ("zip(A, ['x'])", "expected streams, but got a list"),
        ("concat(pipelines=3)", "object is not iterable"),
        ("zip([A, B], 'xy')", "names is 'xy'; it must be a list of texts"),
        ("sample([A, B], [1])", "got 2 streams and 1 weight"),
        ("sample([A, B], [1, 0])", "the weight 0 must be a number above 0"),
        ("concat(3)", "object is not iterable|got a int"),
    ],
)
def test_arguments_of_a_combination_that_do_not_fit_are_refused(case):
    call, message = case
    with pytest.raises((ValueError, TypeError), match=message):
        evaluated(call)


def test_strict_changes_no_state():
    stream = read_sequence(list(range(20))).shuffle(5, seed=1).prefetch(3).and_return()
    next(iter(stream))
    assert stream.state_dict(strict=False) == stream.state_dict(strict=True)


@pytest.mark.parametrize("given", ["text", {"a": 1}, iter([1]), None])
def test_only_lists_and_tuples_are_sequences(given):
    with pytest.raises(TypeError, match="must be a list or tuple"):
        read_sequence(given)


def test_an_iterator_that_cannot_be_pickled_is_taken_only_if_wanted():
    def fresh(_):
        return (n for n in range(3))

    with pytest.raises(TypeError, match="skip_pickling_check"):
        read_iterator(fresh(None), fresh, infinite=False)
    stream = read_iterator(fresh(None), fresh, infinite=False, skip_pickling_check=True)
    assert list(stream.repeat(2)) == [0, 1, 2, 0, 1, 2]


class Seeking:
    """An iterator that knows its own position."""

    def __init__(self):
        self.at = self.loads = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at > 5:
            raise StopIteration
        return self.at

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]
        self.loads += 1


def test_an_iterator_with_a_position_is_restored():
    made = []

    def begin(_):
        made.append(Seeking())
        return made[-1]

    builder = read_iterator(Seeking(), begin, infinite=False)
    stream = builder.and_return()
    assert list(islice(stream, 3)) == [1, 2, 3]
    again = builder.and_return()
    again.load_state_dict(stream.state_dict())
    assert list(again) == [4, 5]
    assert made[-1].loads == 1
