"""A graph with both kinds of sharding: two branches dispatched, one filtered, all joined."""

import pytest

from dagster_dataops import (
    DataLoader2,
    DataPipeline,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    merged_states,
    read_sequence,
)

COUNT = 12


def negative(number):
    return -number


def diagram():
    replicable = read_sequence(list(range(COUNT))).shuffle(0).sharding_filter().map(negative)
    dispatched = [
        read_sequence(list(range(first, first + COUNT))).shuffle(0).sharding_round_robin_dispatch()
        for first in (0, 100)
    ]
    both = DataPipeline.zip(dispatched).map(sum)  # the lowest common ancestor
    return DataPipeline.zip(replicable, both).map(tuple)


def items(workers, seed=123):
    service = MultiProcessingReadingService(workers)
    with DataLoader2(diagram(), reading_service=service) as loader:
        loader.seed(seed)
        return list(loader), list(loader)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_each_number_of_workers_gives_the_same_rows(workers):
    assert items(workers) == items(0)


def test_each_branch_is_read_whole_and_shuffled_by_the_seed():
    first, second = items(0)
    for rows in (first, second):
        left, right = zip(*rows, strict=True)
        assert sorted(left) == sorted(-n for n in range(COUNT))
        assert len(set(right)) > 1
        assert sum(right) == sum(range(COUNT)) + sum(range(100, 100 + COUNT))
    assert first != second
    assert items(0, seed=124)[0] != first


def test_ranks_share_all_branches_alike():
    loaders = []
    for rank in range(3):
        services = SequentialReadingService(
            DistributedReadingService(rank, 3), MultiProcessingReadingService(0)
        )
        loaders.append(DataLoader2(diagram(), reading_service=services))
        loaders[-1].seed(123)
    parts = [list(loader) for loader in loaders]
    assert [row for group in zip(*parts, strict=True) for row in group] == items(0)[0]
    merged_states([loader.state_dict() for loader in loaders])
