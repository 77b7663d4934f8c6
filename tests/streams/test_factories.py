"""Streams that start from sequences and iterators."""

from itertools import islice

import pytest

from dagster_dataops import read_iterator, read_sequence


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
