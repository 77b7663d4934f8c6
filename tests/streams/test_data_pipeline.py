"""Builders and the streams that are read."""

from dagster_dataops import DataPipeline, read_sequence


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
