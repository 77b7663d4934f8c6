"""Items in random order."""

from dagster_dataops import read_sequence


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
