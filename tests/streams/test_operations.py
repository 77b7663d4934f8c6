"""Tests of dagster_dataops.streams.operations, pipeline and reading."""

import pytest

from dagster_dataops import DataPipeline, DataPipelineBuilder, errors, graphs, read_sequence


def test_a_stream_shows_its_stages():
    numbers = read_sequence([1, 2]).map(str)
    joined = DataPipeline.zip(numbers.and_return(), numbers.and_return(), names=["a", "b"])

    assert repr(numbers.shuffle(2)) == "<stream read_sequence, map, shuffle>"
    assert repr(joined.and_return()) == "<stream read_sequence, map, zip>"


def test_seeds_are_derived_by_name_and_can_be_read():
    builder = read_sequence(list(range(50))).shuffle(0)
    stream = builder.and_return()

    assert stream.seeds.keys() == {"read_sequence>shuffle"}
    assert stream.state_dict()["position"]["seed"] == stream.seeds["read_sequence>shuffle"]
    assert list(builder) == list(builder.map(lambda x: x)) == list(builder.and_return(seed=0))
    assert list(builder) != list(builder.and_return(seed=1))
    fixed = read_sequence(list(range(50))).shuffle(0, seed=5)
    assert list(fixed) == list(fixed.and_return(seed=9))


def test_a_stream_with_more_than_stages_keeps_it_upon_another_stage():
    class Named(DataPipelineBuilder):
        def __init__(self, stage, name):
            super().__init__(stage)
            self.name = name

        def then(self, stage):
            return Named(stage, self.name)

    stream = Named(read_sequence([1, 2, 3]).stage, "n")
    edited = graphs.replace(stream, "read_sequence", read_sequence([4]))
    assert (edited.name, list(edited)) == ("n", [4])


BAD = [
    lambda s: s.map(1),
    lambda s: s.map(str, num_parallel_calls=0),
    lambda s: s.map(str, selector="a..b"),
    lambda s: s.map(str, mode="magic"),
    lambda s: s.map(str, mode="async"),
    lambda s: s.filter("x"),
    lambda s: s.bucket(0),
    lambda s: s.bucket_by_length([]),
    lambda s: s.bucket_by_length([(0, 2)]),
    lambda s: s.dynamic_bucket(0, len),
    lambda s: s.dynamic_bucket(1, len, max_num_examples=0),
    lambda s: s.dynamic_bucket(1, len, min_num_examples=3, max_num_examples=2),
    lambda s: s.prefetch(-1),
    lambda s: s.repeat(-1),
    lambda s: s.shard(2, 2),
    lambda s: s.shard(0, 0),
    lambda s: s.shuffle(-1),
    lambda s: s.shuffle(1, seed="x"),
    lambda s: s.skip(1.5),
    lambda s: s.take(True),
    lambda s: DataPipeline.sample(s, s, weights=[1, float("nan")]),
    lambda s: DataPipeline.zip(s, names=["a", "b"]),
    lambda s: DataPipeline.zip(s, names=["a"], flatten=True),
    lambda s: DataPipeline.concat(s, [1]),
    lambda s: s.and_return(on_error="ignore"),
    lambda s: s.and_return(quarantine="x.jsonl"),
    lambda s: s.and_return(on_error="skip", max_errors=-1),
    lambda s: DataPipeline.concat(s.and_return(on_error="skip")),
    lambda s: DataPipeline.concat(s.and_return(seed=3)),
    lambda s: s.and_return().map(str),
]


@pytest.mark.parametrize("build", BAD)
def test_bad_arguments_are_refused_when_the_stream_is_built(build):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - any refusal, with any text
        build(read_sequence([1]))
    assert isinstance(caught.value, errors.DefinitionError)
