"""Tests of dagster_dataops.training.loading.distributed.

How the rank is found, and torch.distributed.
"""

import importlib.util
import json
import subprocess
import sys
import textwrap
from contextlib import ExitStack

import pytest

from dagster_dataops import DataLoader2, DistributedReadingService, read_sequence
from dagster_dataops.errors import StreamDefinitionError
from tests.faults.crashing import HANG_SECONDS
from tests.subprocesses import killed_at_exit


def items(**options):
    service = DistributedReadingService(**options)
    return list(DataLoader2(read_sequence(list(range(7))), reading_service=service))


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def test_the_rank_is_taken_from_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert items() == [1, 3, 5]
    assert items(rank=0, world_size=3) == [0, 3, 6]


def test_an_unknown_rank_is_refused_when_reading_begins(monkeypatch):
    loader = DataLoader2(read_sequence([1]), reading_service=DistributedReadingService())
    with pytest.raises(StreamDefinitionError, match="init_process_group.*RANK and WORLD_SIZE"):
        iter(loader)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(StreamDefinitionError, match="rank is 2.*below world_size, 2"):
        items()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"rank": 1}, "both rank and world_size"),
        ({"world_size": 1}, "both rank and world_size"),
        ({"rank": 2, "world_size": 2}, "rank is 2"),
        ({"rank": -1, "world_size": 2}, "rank is -1"),
        ({"rank": "0", "world_size": 2}, "an integer"),
        ({"rank": 0, "world_size": 2, "ending": "pad"}, "exact, drop, repeat"),
    ],
)
def test_invalid_arguments_are_refused(options, reason):
    with pytest.raises(StreamDefinitionError, match=reason):
        DistributedReadingService(**options)


# ---------------------------------------------------------------- torch.distributed

RANK = textwrap.dedent(
    """
    import json, sys
    import torch.distributed as dist
    from dagster_dataops import DataLoader2, DistributedReadingService, read_sequence

    rank, world_size, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world_size)
    stream = read_sequence(list(range(13))).shuffle(0).sharding_filter()
    loader = DataLoader2(stream, reading_service=DistributedReadingService(ending=sys.argv[4]))
    loader.seed(rank + 5)  # that of rank 0 holds
    epochs = [list(loader), list(loader)]
    states = [None] * world_size
    dist.all_gather_object(states, loader.state_dict())
    loader.shutdown()
    dist.destroy_process_group()
    print(json.dumps([epochs, all(state == states[0] for state in states), states[0]["seed"]]))
    """
)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra 'torch'")
@pytest.mark.parametrize("ending", ["exact", "drop"])
def test_in_a_group_of_torch_the_seed_of_rank_0_holds(tmp_path, ending):
    command = [sys.executable, "-W", "ignore", "-c", RANK]
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        ranks = []
        for rank in ("0", "1"):
            given = [*command, rank, "2", str(tmp_path / "store"), ending]
            started = subprocess.Popen(given, stdout=pipe, stderr=pipe, text=True)
            ranks.append(stack.enter_context(killed_at_exit(started)))
        found = [one.communicate(timeout=HANG_SECONDS) for one in ranks]
    results = [json.loads(out) if out else pytest.fail(err) for out, err in found]
    alone = DataLoader2(read_sequence(list(range(13))).shuffle(0).sharding_filter())
    alone.seed(5)
    for epoch in range(2):
        whole = list(alone)[: 12 if ending == "drop" else 13]
        assert [result[0][epoch] for result in results] == [whole[rank::2] for rank in range(2)]
    assert [result[1:] for result in results] == [[True, 5], [True, 5]]
    assert ("'exact', so the first ranks" in found[0][1]) is (ending == "exact")
