"""Tests of dagster_dataops.training.loading.rank_stage: exclusive, exhaustive, with one state."""

import json
from itertools import islice, zip_longest

import pytest

from dagster_dataops import (
    DataLoader2,
    DataPipeline,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    merged_states,
    read_jsonl,
    read_sequence,
)
from dagster_dataops.errors import StreamDefinitionError, StreamSourceError, StreamStateError
from tests.streams.functions import double, fails_at_5
from tests.streams.indexed_files import records, write


def is_odd(number):
    return number % 2 == 1


def loader(stream, rank, world_size, workers=0, **options):
    distributed = DistributedReadingService(rank, world_size, **options)
    processes = MultiProcessingReadingService(workers)
    return DataLoader2(stream, reading_service=SequentialReadingService(distributed, processes))


def parts(stream, world_size, **options):
    return [list(loader(stream, rank, world_size, **options)) for rank in range(world_size)]


def in_turn(parts):
    """Return the items of all ranks, one of each rank after another."""
    return [
        item
        for group in zip_longest(*parts, fillvalue=parts)
        for item in group
        if item is not parts
    ]


def numbers(count=13):
    return read_sequence(list(range(count))).sharding_filter().map(double)


@pytest.mark.parametrize("world_size", [1, 2, 3, 5, 13, 20])
def test_item_i_belongs_to_rank_i_mod_the_number_of_ranks(world_size):
    found = parts(numbers(), world_size)
    assert found == [[2 * n for n in range(rank, 13, world_size)] for rank in range(world_size)]


def test_ranks_of_a_shuffled_stream_are_exclusive_and_exhaustive():
    stream = read_sequence(list(range(50))).shuffle(7).sharding_filter().map(double)
    assert in_turn(parts(stream, 4)) == list(stream)


def test_each_rank_makes_its_own_batches_behind_the_mark():
    assert parts(numbers(8).bucket(2), 2) == [[[0, 4], [8, 12]], [[2, 6], [10, 14]]]


def test_without_a_mark_the_ranks_share_the_items_of_the_whole_stream():
    batches = read_sequence(list(range(10))).map(double).bucket(2).map(sum)
    assert in_turn(parts(batches, 2)) == list(batches)
    odd = read_sequence(list(range(10))).filter(is_odd)
    assert parts(odd, 2) == [[1, 5, 9], [3, 7]]


def test_without_a_mark_the_last_maps_see_only_the_items_of_the_rank():
    seen = []
    stream = read_sequence(list(range(6))).filter(lambda n: True).map(seen.append)
    list(loader(stream, 1, 3))
    assert seen == [1, 4]


def test_marks_in_all_inputs_of_a_combination_are_shared_one_by_one():
    both = DataPipeline.zip(numbers(6), read_sequence(list("abcdef")).sharding_filter())
    assert parts(both, 2) == [
        [[0, "a"], [4, "c"], [8, "e"]],
        [[2, "b"], [6, "d"], [10, "f"]],
    ]


def test_a_dispatching_mark_is_shared_as_well():
    stream = read_sequence(list(range(7))).sharding_round_robin_dispatch().map(double)
    assert parts(stream, 2) == [[0, 4, 8, 12], [2, 6, 10]]


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("exact", [[0, 3, 6], [1, 4, 7], [2, 5]]),
        ("drop", [[0, 3], [1, 4], [2, 5]]),
        ("repeat", [[0, 3, 6], [1, 4, 7], [2, 5, 6]]),
    ],
)
def test_the_last_items_are_kept_dropped_or_repeated(ending, expected):
    stream = read_sequence(list(range(8)))
    assert parts(stream, 3, ending=ending) == expected
    assert parts(read_sequence([]), 3, ending=ending) == [[], [], []]


def test_with_fewer_items_than_ranks_each_ending_holds():
    stream = read_sequence([7])
    assert parts(stream, 3) == [[7], [], []]
    assert parts(stream, 3, ending="drop") == [[], [], []]
    assert parts(stream, 3, ending="repeat") == [[7], [7], [7]]


def test_items_before_an_error_come_before_it():
    stream = read_sequence(list(range(9))).map(fails_at_5).sharding_filter()
    for rank in range(3):
        items = iter(loader(stream, rank, 3))
        expected = [n for n in range(5) if n % 3 == rank]
        assert list(islice(items, len(expected))) == expected
        with pytest.raises(ValueError, match="five"):
            next(items)


# ---------------------------------------------------------------- states


@pytest.fixture
def stream(tmp_path):
    path = write(tmp_path / "n.jsonl", records(47))
    return read_jsonl(path).shuffle(0).sharding_filter().map(dict)


@pytest.mark.parametrize("at", [0, 1, 4, 9])
def test_the_state_is_the_same_on_all_ranks_and_is_restored_by_any_number(stream, at):
    everything = [list(DataLoader2(stream)), *[list(loader(stream, 0, 1))]]
    assert everything[0] == everything[1]
    for world_size in (1, 2, 5):
        loaders = [loader(stream, rank, world_size) for rank in range(world_size)]
        heads = [list(islice(one, at)) for one in loaders]
        state = merged_states([json.loads(json.dumps(one.state_dict())) for one in loaders])
        assert in_turn(heads) == everything[0][: at * world_size]
        for other in (1, 2, 3, 7):
            rests = []
            for rank in range(other):
                resumed = loader(stream, rank, other)
                resumed.load_state_dict(state)
                rests.append(list(resumed))
            assert in_turn(rests) == everything[0][at * world_size :]
            assert {len(rest) for rest in rests} <= {len(rests[0]), len(rests[0]) - 1}


@pytest.mark.slow
def test_workers_and_ranks_together_change_no_item_and_no_state(stream):
    plain = [loader(stream, rank, 2) for rank in range(2)]
    with_workers = [loader(stream, rank, 2, workers=2) for rank in range(2)]
    heads = [[list(islice(one, 5)) for one in some] for some in (plain, with_workers)]
    assert heads[0] == heads[1]
    states = [one.state_dict() for one in [*plain, *with_workers]]
    for one in with_workers:
        one.shutdown()
    merged_states(states)


@pytest.mark.slow
@pytest.mark.parametrize("marked", [True, False])
def test_ranks_and_workers_can_be_given_in_any_order(marked):
    source = read_sequence(list(range(20))).shuffle(0)
    stream = (source.sharding_filter() if marked else source).map(double)
    found = []
    for rank in range(2):
        services = [DistributedReadingService(rank, 2), MultiProcessingReadingService(1)]
        for ordered in (services, services[::-1]):
            with DataLoader2(stream, reading_service=SequentialReadingService(*ordered)) as one:
                found.append(list(one))
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert in_turn(found[::2]) == list(stream)


def test_the_global_batches_are_the_same_for_each_number_of_ranks():
    stream = read_sequence(list(range(24))).shuffle(0).sharding_filter()
    batches = set()
    for world_size in (1, 2, 4, 8):
        rows = [iter(loader(stream, rank, world_size)) for rank in range(world_size)]
        each = 8 // world_size
        made = [sorted(n for row in rows for n in islice(row, each)) for _ in range(3)]
        batches.add(json.dumps(made))
    assert len(batches) == 1


def test_a_rank_reads_only_its_own_records_where_they_are_read_by_number(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(600)) + "{broken\n")
    stream = read_jsonl(path).shuffle(0, seed=1).sharding_filter()
    failed = []
    for rank in range(2):
        try:
            list(loader(stream, rank, 2))
        except StreamSourceError:
            failed.append(rank)
    assert len(failed) == 1
    skipping = stream.and_return(on_error="skip")
    found = [list(loader(skipping, rank, 2)) for rank in range(2)]
    assert in_turn(found) == list(stream.and_return(on_error="skip"))
    assert [len(one) for one in found] == [300, 300]


@pytest.mark.parametrize("ending", ["exact", "drop", "repeat"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000, 1001, 1003])
def test_reading_by_number_gives_the_items_of_reading_in_order(tmp_path, count, ending):
    path = write(tmp_path / "n.jsonl", records(count))
    by_number = read_jsonl(path).shuffle(0).sharding_filter()
    in_order = read_sequence(list(by_number)).sharding_filter()
    assert parts(by_number, 4, ending=ending) == parts(in_order, 4, ending=ending)
    ranks = [loader(by_number, rank, 4, ending=ending) for rank in range(4)]
    for one in ranks:
        list(one)
    merged_states([one.state_dict() for one in ranks])


def test_a_state_of_ranks_continues_without_ranks(stream):
    loaders = [loader(stream, rank, 3) for rank in range(3)]
    for one in loaders:
        list(islice(one, 5))
    alone = DataLoader2(stream)
    alone.load_state_dict(loaders[2].state_dict())
    assert list(alone) == list(stream)[15:]


def test_later_epochs_are_those_of_the_stream():
    stream = read_sequence(list(range(10))).shuffle(0).sharding_filter()
    alone = DataLoader2(stream)
    epochs = [list(alone) for _ in range(3)]
    for ending in ("exact", "drop", "repeat"):
        ranks = [loader(stream, rank, 3, ending=ending) for rank in range(3)]
        for number, epoch in enumerate(epochs):
            found = in_turn([list(one) for one in ranks])
            assert found[:9] == epoch[:9]
            assert merged_states([one.state_dict() for one in ranks])["epoch"] == number + 1


def with_a_number(number, random):
    return [number, random.randrange(10**9)]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
@pytest.mark.parametrize("ending", ["exact", "drop"])
def test_random_numbers_belong_to_the_item_whatever_the_number_of_ranks(workers, mark, ending):
    source = read_sequence(list(range(23))).shuffle(0)
    stream = getattr(source, mark)().map(with_a_number, random=True)
    alone = DataLoader2(stream)
    epochs = [list(alone) for _ in range(2)]
    assert len({number for epoch in epochs for _, number in epoch}) == 46
    for world_size in (2, 3):
        ranks = [
            loader(stream, rank, world_size, workers, ending=ending) for rank in range(world_size)
        ]
        heads = [list(islice(one, 4)) for one in ranks]
        state = merged_states([one.state_dict() for one in ranks])
        assert in_turn(heads) == epochs[0][: 4 * world_size]
        alone.load_state_dict(state)
        assert list(alone) == epochs[0][4 * world_size :]
        for one in ranks:
            one.load_state_dict(state)
        for whole in (epochs[0][4 * world_size :], epochs[1]):
            found = in_turn([list(one) for one in ranks])
            assert found == whole[: len(found)]
            assert len(found) > len(whole) - world_size
            merged_states([one.state_dict() for one in ranks])
        for one in ranks:
            one.shutdown()


def test_ranks_that_are_not_in_step_have_no_state_in_common(stream):
    loaders = [loader(stream, rank, 2) for rank in range(2)]
    list(islice(loaders[0], 3)), list(islice(loaders[1], 2))
    with pytest.raises(StreamStateError, match="not in step: the stream of rank 0 .* rank 1"):
        merged_states([one.state_dict() for one in loaders])


def test_a_stream_is_not_shared_twice():
    services = DistributedReadingService(0, 2), DistributedReadingService(1, 2)
    twice = DataLoader2(numbers(), reading_service=SequentialReadingService(*services))
    with pytest.raises(StreamDefinitionError, match="shared between ranks already"):
        iter(twice)


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
