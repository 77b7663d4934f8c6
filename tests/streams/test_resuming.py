"""Tests that every stage, and any tree of stages, resumes at any position."""

from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import DataPipeline, list_files, read_iterator, read_jsonl, read_sequence, text
from dagster_dataops.testing import assert_resumes_anywhere
from tests.examples import at_most
from tests.streams.sequences import numbers

count, constant = DataPipeline.count, DataPipeline.constant


def halves(bucket):
    middle = (len(bucket) + 1) // 2
    return [bucket[:middle]], bucket[middle:]


async def doubled(item):
    return item * 2


STREAMS = {
    "sequence": lambda: numbers(1, 2, 3),
    "empty": numbers,
    "count": lambda: count(5, -2).take(4),
    "constant": lambda: constant([1], key="n").take(3),
    "map": lambda: numbers(1, 2, 3).map(lambda x: x * 10),
    "parallel map": lambda: numbers(*range(30)).map(lambda x: x * 10, num_parallel_calls=3),
    "async map": lambda: numbers(*range(20)).map(doubled, num_parallel_calls=3),
    "filter": lambda: numbers(*range(9)).filter(lambda x: x % 3 == 1),
    "skip": lambda: numbers(1, 2, 3, 4).skip(2),
    "skip all": lambda: numbers(1).skip(2),
    "take": lambda: count().take(3),
    "shard": lambda: numbers(*range(11)).shard(1, 3),
    "even shard": lambda: numbers(*range(11)).shard(1, 3, allow_uneven=False),
    "repeat": lambda: numbers(1, 2, 3).repeat(3),
    "repeat for ever": lambda: numbers(1, 2).repeat(),
    "shuffle": lambda: numbers(*range(17)).shuffle(5),
    "shuffle all": lambda: numbers(*range(7)).shuffle(0, seed=3),
    "shuffled epochs": lambda: numbers(*range(7)).shuffle(3).repeat(3),
    "equal epochs": lambda: numbers(*range(7)).shuffle(3).repeat(3, reset_rng=True),
    "bucket": lambda: numbers(*range(8)).bucket(3),
    "lengths": lambda: read_sequence(["a", "bb", "c", "dd", "eee", "f", "gg"]).bucket_by_length(
        [(2, 1), (3, 2), (1, 3)]
    ),
    "costs": lambda: numbers(*range(1, 12)).dynamic_bucket(9, lambda x: x),
    "costs with rests": lambda: numbers(*range(1, 12)).dynamic_bucket(9, lambda x: x, halves),
    "costs with many lists": lambda: numbers(*range(1, 12)).dynamic_bucket(
        9, lambda x: x, lambda b: ([[x] for x in b[:-1]] or [b], b[-1:] if len(b) > 1 else [])
    ),
    "prefetch": lambda: numbers(*range(12)).prefetch(4),
    "concat": lambda: DataPipeline.concat(numbers(1, 2), numbers(), numbers(3)),
    "zip": lambda: DataPipeline.zip(numbers(1, 2, 3), count(), names=["a", "b"]),
    "zip to shortest": lambda: DataPipeline.zip(
        numbers(1, 2, 3), numbers(4, 5), zip_to_shortest=True
    ),
    "round robin": lambda: DataPipeline.round_robin(numbers(1, 2, 3), numbers(5), count()),
    "each once": lambda: DataPipeline.round_robin(
        numbers(1, 2, 3), numbers(), numbers(5), allow_repeats=False
    ),
    "sample": lambda: DataPipeline.sample(
        numbers(1, 2, 3), numbers(4, 5, 6, 7), weights=[0.7, 0.3]
    ),
    "sample each once": lambda: DataPipeline.sample(
        numbers(1, 2, 3), numbers(), count().map(str), allow_repeats=False
    ),
    "yield from": lambda: numbers(3, 0, 2).yield_from(lambda n: count().take(n)),
    "yield from shuffled": lambda: numbers(5, 4).yield_from(
        lambda n: numbers(*range(n)).shuffle(0)
    ),
    "iterator": lambda: read_iterator(iter([1, 2, 3]), lambda _: iter([1, 2, 3]), infinite=False),
    "recipe": lambda: (
        DataPipeline.sample(
            [numbers(*range(n)).shuffle(4).shard(0, 2).repeat(2) for n in (9, 6)], weights=[2, 1]
        )
        .map(lambda x: x + 1)
        .bucket(2)
        .prefetch(2)
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_resumes_at_any_position(name):
    assert_resumes_anywhere(STREAMS[name], limit=40)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_resumes_at_any_position_below_other_stages(name):
    assert_resumes_anywhere(
        lambda: DataPipeline.round_robin(STREAMS[name]().take(9), numbers(1, 2)).repeat(2), limit=40
    )
    assert_resumes_anywhere(lambda: STREAMS[name]().take(12).shuffle(4).repeat(2), limit=40)


def twice_shuffled(*items):
    return numbers(*items).shuffle(2).repeat(4)


READ_AHEAD = {
    "a thread": lambda: twice_shuffled(*range(5)).prefetch(8).take(6),
    "calls": lambda: twice_shuffled(*range(5)).map(str, num_parallel_calls=2).take(6),
    "a window": lambda: twice_shuffled(*range(5)).shuffle(12).take(12),
    "a round": lambda: DataPipeline.round_robin(twice_shuffled(*range(3)), numbers(7)).take(8),
    "draws": lambda: DataPipeline.sample(twice_shuffled(1, 2, 3), twice_shuffled(4, 5, 6)).take(7),
    "a row that is not filled": lambda: DataPipeline.zip(
        twice_shuffled(0, 1, 2), numbers(7, 8), zip_to_shortest=True
    ).map(str, num_parallel_calls=2),
    "half a stream": lambda: (
        numbers(3, 4, 5).yield_from(lambda n: numbers(*range(n)).shuffle(0)).take(4)
    ),
}


@pytest.mark.parametrize("name", READ_AHEAD)
def test_no_epoch_depends_on_how_far_was_read_ahead_in_the_one_before(name):
    assert_resumes_anywhere(lambda: READ_AHEAD[name]().repeat(3))


# ---------------------------------------------------------------- random trees

_LEAVES = st.one_of(
    st.lists(st.integers(0, 9), max_size=6).map(lambda items: ("read_sequence", items)),
    st.tuples(st.just("count"), st.integers(-3, 3), st.integers(1, 6)),
)
_WINDOW = st.integers(0, 4)


def _more(inner):
    streams = st.lists(inner, max_size=3)
    return st.one_of(
        st.tuples(st.just("map"), inner),
        st.tuples(st.just("parallel"), inner),
        st.tuples(st.just("filter"), inner),
        st.tuples(st.just("skip"), inner, _WINDOW),
        st.tuples(st.just("take"), inner, _WINDOW),
        st.tuples(st.just("shard"), inner, st.sampled_from([(0, 1), (1, 3)]), st.booleans()),
        st.tuples(st.just("repeat"), inner, st.integers(0, 3), st.booleans()),
        st.tuples(st.just("shuffle"), inner, _WINDOW),
        st.tuples(st.just("bucket"), inner, st.integers(1, 3), st.booleans()),
        st.tuples(st.just("lengths"), inner, st.booleans()),
        st.tuples(st.just("costs"), inner),
        st.tuples(st.just("yield_from"), inner),
        st.tuples(st.just("prefetch"), inner, st.integers(0, 2)),
        st.tuples(st.just("concat"), streams),
        st.tuples(st.just("zip"), streams),
        st.tuples(st.just("round_robin"), streams, st.booleans(), st.booleans()),
        st.tuples(st.just("sample"), streams),
        st.tuples(st.just("pseudo"), inner, st.booleans()),
    )


def size_of(item):
    return item % 4 + 1 if isinstance(item, int) else len(item) % 4 + 1


def inner_of(item):
    return read_sequence([item, [item]]).take(size_of(item) % 3)


def grow(tree):  # noqa: C901 - one branch a stage
    match tree:
        case ("read_sequence", items):
            return read_sequence(items)
        case ("count", start, most):
            return count(start).take(most)
        case ("map", inner):
            return grow(inner).map(lambda x: [x, 1])
        case ("parallel", inner):
            return grow(inner).map(lambda x: (x, 2), num_parallel_calls=2)
        case ("filter", inner):
            return grow(inner).filter(lambda x: size_of(x) > 1)
        case ("shard", inner, (at, among), uneven):
            return grow(inner).shard(at, among, uneven)
        case ("lengths", inner, drop):
            measured = grow(inner).map(lambda x: {"x": x, "n": size_of(x)})
            return measured.bucket_by_length([(2, 2), (3, 4)], "n", drop_remainder=drop).map(list)
        case ("costs", inner):
            return grow(inner).dynamic_bucket(5, size_of, halves)
        case ("yield_from", inner):
            return grow(inner).yield_from(inner_of)
        case ("zip", inner):
            return DataPipeline.zip(*map(grow, inner), zip_to_shortest=True)
        case ("concat", inner):
            return DataPipeline.concat(*map(grow, inner))
        case ("round_robin", inner, shortest, repeats):
            return DataPipeline.round_robin(
                *map(grow, inner), stop_at_shortest=shortest, allow_repeats=repeats
            )
        case ("sample", inner):
            return DataPipeline.sample(*map(grow, inner), allow_repeats=False)
        case ("pseudo", inner, repeats):
            return DataPipeline.round_robin(count(), grow(inner), allow_repeats=repeats)
        case (name, inner, *options):
            return getattr(grow(inner), name)(*options)
    raise AssertionError(tree)


@settings(max_examples=at_most(150), suppress_health_check=[HealthCheck.too_slow])
@given(st.recursive(_LEAVES, _more, max_leaves=5))
def test_any_tree_of_stages_resumes_at_any_position(tree):
    assert_resumes_anywhere(lambda: grow(tree), limit=12)


# ---------------------------------------------------------------- files


@pytest.mark.slow
def test_files_resume_at_any_position(folder):
    path = folder / "part1.jsonl"
    assert_resumes_anywhere(lambda: list_files(folder))
    assert_resumes_anywhere(lambda: read_jsonl(path, block_size=1024))
    assert_resumes_anywhere(lambda: text.read_text(path, block_size=1024, skip_empty=True))
    assert_resumes_anywhere(lambda: text.read_text(path, key="t", block_size=1024).repeat(2))
    assert_resumes_anywhere(lambda: list_files(folder, "*.jsonl").yield_from(read_jsonl))


def test_a_state_fits_any_size_of_blocks(folder):
    path = folder / "part1.jsonl"
    stream = read_jsonl(path, block_size=1024).and_return()
    items = list(read_jsonl(path))
    for at, _ in enumerate(islice(stream, 25), 1):
        other = read_jsonl(path, block_size=1500 + 700 * at).and_return()
        other.load_state_dict(stream.state_dict())
        assert list(other) == items[at:]


def test_a_source_reads_from_the_position(folder, monkeypatch):
    """Resuming near the end of a file reads only its last block."""
    import os

    path = folder / "long.jsonl"
    path.write_text("".join(f'{{"n":{n}}}\n' for n in range(20_000)))
    stream = read_jsonl(path, block_size=1024).and_return()
    iterator = iter(stream)
    for _ in islice(iterator, 19_990):
        pass
    state = stream.state_dict()
    read = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read.append(at) or pread(fd, size, at))
    again = read_jsonl(path, block_size=1024).and_return()
    again.load_state_dict(state)
    read.clear()  # the fingerprint looks at both ends of the file
    assert [item["n"] for item in again] == list(range(19_990, 20_000))
    assert min(read) > path.stat().st_size - 4096


@pytest.mark.slow
def test_the_pipeline_of_a_fine_tuning_resumes_after_every_record(folder):
    """Files, shuffled, sharded, sampled by weight, mapped by selector, bucketed by length."""

    def source(pattern):
        files = list_files(folder, pattern).shuffle(0).yield_from(read_jsonl)
        return files.shuffle(8).shard(1, 2).and_return()

    def recipe():
        sources = [source(f"*part{number}.jsonl") for number in (1, 2, 10)]
        return (
            DataPipeline.sample(sources, weights=[3, 2, 1], seed=7)
            .map(lambda pad: pad[:3], selector="pad")
            .map(lambda n: n % 5 + 1, selector="line")
            .bucket_by_length([(4, 3), (3, 5)], selector="line")
        )

    assert_resumes_anywhere(recipe)
    lengths = [[record["line"] for record in bucket] for bucket in recipe()]
    assert all(len(bucket) <= 4 for bucket in lengths)
