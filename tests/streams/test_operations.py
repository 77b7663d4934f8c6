"""Tests of dagster_dataops.streams.operations, pipeline and reading."""

from itertools import islice

import pytest

from dagster_dataops import DataPipeline, errors, read_sequence
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.factories import read_iterator

count, constant = DataPipeline.count, DataPipeline.constant
ENDLESS = [
    (count(), Finitude.PSEUDO_INFINITE, "count"),
    (constant(1).map(str).shuffle(3), Finitude.PSEUDO_INFINITE, "constant"),
    (read_sequence([1]).repeat(), Finitude.INFINITE, "repeat"),
    (count().repeat(), Finitude.INFINITE, "repeat"),
    (count().repeat(2), Finitude.PSEUDO_INFINITE, "count"),
    (DataPipeline.concat(read_sequence([1]), count()), Finitude.PSEUDO_INFINITE, "count"),
    (DataPipeline.round_robin(count(), constant(1)), Finitude.PSEUDO_INFINITE, "count"),
    (
        DataPipeline.sample(read_sequence([1]), read_sequence([2]).repeat().map(str)),
        Finitude.INFINITE,
        "repeat",
    ),
    (DataPipeline.zip(count(), read_sequence([1]).repeat()), Finitude.INFINITE, "repeat"),
    (
        read_iterator(iter([1]), lambda old: iter([1]), infinite=True),
        Finitude.INFINITE,
        "read_iterator",
    ),
]


@pytest.mark.parametrize(("stream", "kind", "stage"), ENDLESS)
def test_an_infinite_stream_names_the_stage_that_causes_it(stream, kind, stage):
    assert stream.finitude is kind
    assert stream.endless_stage == stage
    assert stream.and_return().is_infinite()
    assert stream.take(3).finitude is Finitude.FINITE


@pytest.mark.parametrize(
    "stream",
    [
        read_sequence([1]).repeat(3),
        DataPipeline.round_robin(count(), read_sequence([1])),
        DataPipeline.round_robin(read_sequence([1]).repeat(), count(), stop_at_shortest=True),
        DataPipeline.sample(count(), read_sequence([1])),
        DataPipeline.zip(count(), read_sequence([1])),
        DataPipeline.zip(),
    ],
)
def test_the_finitude_of_a_stream_is_known(stream):
    assert stream.finitude is Finitude.FINITE
    assert stream.endless_stage is None
    assert len(list(islice(stream, 100))) < 100


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


def test_functions_that_change_items_never_change_the_source():
    def marked(record):
        record["seen"] = record.get("seen", 0) + 1
        record["inner"]["list"].append(1)
        return record

    records = [{"inner": {"list": []}}]
    stream = read_sequence(records).repeat(3).map(marked)
    once = {"inner": {"list": [1]}, "seen": 1}

    assert list(stream) == [once] * 3
    assert list(constant({"inner": {"list": []}}).map(marked).take(2)) == [once] * 2
    assert records == [{"inner": {"list": []}}]


def test_epochs_are_shuffled_differently_by_default():
    stream = read_sequence(list(range(50))).shuffle(0).and_return()
    first = list(stream)
    stream.reset()
    second = list(stream)
    stream.reset(reset_rng=True)

    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))
    assert list(stream) == first


def test_seeds_are_derived_by_name_and_can_be_read():
    builder = read_sequence(list(range(50))).shuffle(0)
    stream = builder.and_return()

    assert stream.seeds.keys() == {"read_sequence>shuffle"}
    assert stream.state_dict()["position"][0] == stream.seeds["read_sequence>shuffle"]
    assert list(builder) == list(builder.map(lambda x: x)) == list(builder.and_return(seed=0))
    assert list(builder) != list(builder.and_return(seed=1))
    fixed = read_sequence(list(range(50))).shuffle(0, seed=5)
    assert list(fixed) == list(fixed.and_return(seed=9))


def test_every_inner_stream_is_shuffled_in_its_own_way():
    stream = read_sequence([20, 20]).yield_from(lambda n: read_sequence(range_(n)).shuffle(0))
    items = list(stream)

    assert sorted(items[:20]) == sorted(items[20:]) == range_(20)
    assert items[:20] != items[20:]


def range_(count):
    return list(range(count))


def test_records_follow_the_weights():
    drawn = DataPipeline.sample(
        constant("a").map(str), read_sequence(["b"] * 2000), weights=[3, 1], seed=1
    )
    items = list(drawn)

    assert items.count("b") == 2000
    assert 2.7 < items.count("a") / 2000 < 3.3


def test_sample_without_repeats_draws_pseudo_infinite_streams_as_well():
    items = list(
        DataPipeline.sample(count(), read_sequence(["x"] * 20), allow_repeats=False, seed=1)
    )

    assert items.count("x") == 20
    assert [item for item in items if item != "x"] == range_(len(items) - 20)
    assert len(items) > 22


def test_an_empty_stream_cannot_be_sampled():
    with pytest.raises(errors.DataPipelineError, match="index 1 is empty"):
        list(DataPipeline.sample(read_sequence([1]), read_sequence([])))


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
    lambda s: DataPipeline.sample(s, s, weights=[1]),
    lambda s: DataPipeline.sample(s, s, weights=[1, 0]),
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


def test_lengths_of_texts_lists_and_selected_columns_count():
    records = [{"a": "x", "b": [1, 2]}, {"a": "xyz", "b": []}, {"a": "", "b": [1]}]
    stream = read_sequence(records).bucket_by_length([(2, 2), (2, 3)], selector="a,b")
    assert list(stream) == [[records[0], records[2]], [records[1]]]
    with pytest.raises(errors.DataPipelineError, match="length 9 is above 2"):
        list(read_sequence([9]).bucket_by_length([(1, 2)]))
    skipping = read_sequence([0, 1, 9]).bucket_by_length(
        [(1, 2)], skip_below_min_examples=True, skip_above_max_examples=True
    )
    assert list(skipping) == [[1]]
    with pytest.raises(errors.DataPipelineError, match="a NoneType has no length"):
        list(read_sequence([None]).bucket_by_length([(1, 2)]))


def test_dynamic_buckets_end_by_cost_and_by_size():
    def costs(**options):
        return list(read_sequence([1, 2, 3, 4, 5]).dynamic_bucket(5, lambda x: x, **options))

    assert costs() == [[1, 2, 3], [4, 5]]
    assert costs(max_num_examples=2) == [[1, 2], [3, 4], [5]]
    assert costs(min_num_examples=4) == [[1, 2, 3, 4], [5]]
    assert costs(min_num_examples=4, drop_remainder=True) == [[1, 2, 3, 4]]


def test_a_filter_returns_true_or_false():
    assert list(read_sequence([1, 0, 2]).filter(lambda x: x)) == [1, 2]
    assert list(read_sequence([1]).filter(lambda x: None)) == []
    with pytest.raises(RuntimeError, match="must return True or False, not a list"):
        list(read_sequence([1]).filter(lambda x: [x]))
    kept = read_sequence([{"a": {"n": 1}}, {"a": {"n": 2}}]).filter(lambda n: n > 1, "a.n")
    assert list(kept) == [{"a": {"n": 2}}]
