"""Ranks whose workers are killed again and again read every item once; so do later ranks."""

import json
import multiprocessing
import os
import random
import signal
from itertools import chain, islice, zip_longest

import pytest

from dagster_dataops import (
    DataLoader2,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    merged_states,
    read_sequence,
)
from tests.faults.cases import cases

_KILLS = cases(6, campaign=200)
_ITEMS = 400
_END = object()


def triple(number):
    return number * 3


def loader(rank, world_size, workers):
    stream = read_sequence(list(range(_ITEMS))).shuffle(0).sharding_filter().map(triple)
    services = SequentialReadingService(
        DistributedReadingService(rank, world_size), MultiProcessingReadingService(workers)
    )
    return DataLoader2(stream, reading_service=services)


def in_turn(parts):
    items = chain.from_iterable(zip_longest(*parts, fillvalue=_END))
    return [item for item in items if item is not _END]


class Killer:
    """Yield items, and kill a worker now and then."""

    def __init__(self, generator):
        self.generator, self.kills = generator, 0

    def reading(self, items):
        for item in items:
            workers = multiprocessing.active_children()
            if workers and self.generator.random() < 0.05:
                os.kill(self.generator.choice(workers).pid, signal.SIGKILL)
                self.kills += 1
            yield item


@pytest.mark.slow
def test_no_item_is_lost_doubled_or_moved_whatever_worker_is_killed():
    generator = random.Random(8)
    killer = Killer(generator)
    whole = list(loader(0, 1, 0))
    while killer.kills < _KILLS:
        world_size, at = generator.choice([1, 2, 3]), generator.randrange(1, 100)
        ranks = [loader(rank, world_size, generator.choice([1, 2])) for rank in range(world_size)]
        heads = [list(killer.reading(islice(one, at))) for one in ranks]
        state = merged_states([json.loads(json.dumps(one.state_dict())) for one in ranks])
        for one in ranks:
            one.shutdown()
        other, rests = generator.choice([1, 2, 4]), []
        for rank in range(other):
            with loader(rank, other, generator.choice([0, 1, 2])) as resumed:
                resumed.load_state_dict(state)
                rests.append(list(killer.reading(resumed)))
        assert in_turn(heads) == whole[: at * world_size]
        assert in_turn(rests) == whole[at * world_size :]
    assert not multiprocessing.active_children()
