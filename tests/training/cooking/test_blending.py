from collections import Counter
from itertools import islice
from typing import NamedTuple

import pytest

from dagster_dataops import read_jsonl
from dagster_dataops.streams.core.sequences import SequenceSource
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.streams.stages.repeating import Repeat
from dagster_dataops.streams.stages.shuffling import Shuffle
from dagster_dataops.testing import assert_resumes_anywhere
from dagster_dataops.training.cooking.blending import Blend, BlendEpochized, Leaf, RowRange


class About(NamedTuple):
    """A description of a dataset."""

    name: str

    def facts(self):
        return {"name": self.name}


def numbered(number, count):
    return SequenceSource.of([(number, item) for item in range(count)])


def leaves(*counts, shuffled=False):
    sources = [numbered(number, count) for number, count in enumerate(counts)]
    read = [Shuffle(one, 0, 3) if shuffled else one for one in sources]
    return tuple(Leaf(one, About(str(number))) for number, one in enumerate(read))


def blend(*weights, counts=None, seed=None, shuffled=False):
    counts = counts or [7] * len(weights)
    titles = tuple(f"leaf {number}" for number in range(len(weights)))
    return DataPipelineBuilder(Blend(leaves(*counts, shuffled=shuffled), titles, seed, weights))


def epochized(*counts, seed=1, totals=None):
    titles = tuple(f"leaf {number}" for number in range(len(counts)))
    return DataPipelineBuilder(
        BlendEpochized(leaves(*counts), titles, seed, tuple(totals or counts))
    )


def test_shares_are_those_of_the_weights():
    found = Counter(number for number, _ in islice(blend(7, 2, 1), 20_000))

    for number, share in enumerate([0.7, 0.2, 0.1]):
        allowed = 4 * (20_000 * share * (1 - share)) ** 0.5
        assert abs(found[number] - 20_000 * share) < allowed


def test_each_dataset_is_read_in_order_again_and_again():
    found = list(islice(blend(1, 2), 100))

    for number in (0, 1):
        items = [item for leaf, item in found if leaf == number]
        assert items == [place % 7 for place in range(len(items))]


def test_a_dataset_that_ends_is_shuffled_differently_in_its_next_epoch():
    found = [item for number, item in islice(blend(1, 1, shuffled=True), 80) if number == 0]

    assert sorted(found[:7]) == sorted(found[7:14])
    assert found[:7] != found[7:14]


def test_a_blend_never_ends_and_reads_nothing_ahead():
    stream = blend(1, 1).and_return()
    next(iter(stream))

    assert stream.endless_stage == "blend"
    assert sum(leaf["samples"] for leaf in stream.leaves) == 1


def test_an_epochized_blend_reads_every_item_once_in_random_order():
    found = list(epochized(40, 10, 3))

    assert Counter(number for number, _ in found) == {0: 40, 1: 10, 2: 3}
    assert [number for number, _ in found] != sorted(number for number, _ in found)
    assert [item for number, item in found if number == 0] == list(range(40))


def test_a_dataset_that_ends_early_is_left_out():
    found = list(epochized(5, 5, totals=[5, 50]))

    assert Counter(number for number, _ in found) == {0: 5, 1: 5}


def test_an_epochized_blend_of_nothing_ends_at_once():
    assert list(epochized(0, 0)) == []


def test_counts_go_on_over_epochs():
    stream = DataPipelineBuilder(Repeat(epochized(2, 3).stage, 2, False)).and_return()
    list(stream)

    assert stream.leaves == [{"name": "0", "samples": 4}, {"name": "1", "samples": 6}]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_range_of_items_is_read(tmp_path, is_indexed):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"n":{number}}}\n' for number in range(20)))
    source = read_jsonl(path)
    stage = source.stage if is_indexed else source.map(dict).stage

    def make():
        return DataPipelineBuilder(RowRange(stage, 5, 9))

    assert [one["n"] for one in make()] == [5, 6, 7, 8]
    assert [one["n"] for one in make().repeat(2)] == [5, 6, 7, 8] * 2
    assert_resumes_anywhere(make)


@pytest.mark.parametrize(
    "make",
    [
        lambda: blend(3, 1, 2, counts=[2, 5, 1]),
        lambda: blend(1, 1, shuffled=True),
        lambda: epochized(4, 9, 1),
        lambda: epochized(4, 9, totals=[6, 9]).repeat(2),
        lambda: blend(1, 2).take(9).repeat(2),
    ],
)
def test_it_resumes_anywhere(make):
    assert_resumes_anywhere(make, limit=40)
