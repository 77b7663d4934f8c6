"""Loaders read by PyTorch's own data loaders, and tensors moved."""

import importlib.util
import json
import sys
from itertools import islice
from typing import NamedTuple

import pytest

from dagster_dataops import (
    DataLoader2,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    pin_memory,
    read_sequence,
    to_device,
    torch_dataset,
)
from dagster_dataops.errors import MissingExtraError


class Pair(NamedTuple):
    x: object
    y: object


def has(*packages):
    return all(importlib.util.find_spec(package) for package in packages)


with_torch = pytest.mark.skipif(not has("torch"), reason="needs the extra 'torch'")
with_torchdata = pytest.mark.skipif(not has("torch", "torchdata"), reason="needs torch, torchdata")
pytestmark = pytest.mark.filterwarnings("ignore")  # the code of torch causes warnings


def loader(workers=0, rank=0, world_size=1):
    stream = read_sequence(list(range(24))).shuffle(0).sharding_filter().map(lambda n: n + 1)
    services = SequentialReadingService(
        DistributedReadingService(rank, world_size), MultiProcessingReadingService(workers)
    )
    return DataLoader2(stream.bucket(2), reading_service=services)


@pytest.mark.parametrize(
    ("call", "feature"),
    [
        (lambda: torch_dataset(loader()), "torch_dataset"),
        (lambda: pin_memory([]), "pin_memory"),
        (lambda: to_device([], "cpu"), "to_device"),
    ],
)
def test_without_torch_the_error_names_the_extra(monkeypatch, call, feature):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("torch_dataset", "torch_transfer"):
        monkeypatch.delitem(sys.modules, f"dagster_dataops.streams.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"{feature}\(\).*dagster-dataops\[torch\]"):
        call()


@with_torch
def test_a_plain_data_loader_reads_the_epochs_of_a_loader():
    from torch.utils.data import DataLoader

    expected = loader()
    batches = DataLoader(torch_dataset(loader(workers=1)), batch_size=None)
    assert [list(batches), list(batches)] == [list(expected), list(expected)]


@with_torch
def test_workers_of_a_torch_loader_are_refused():
    from torch.utils.data import DataLoader

    with pytest.raises(Exception, match="num_workers=0; give reading_service"):
        list(DataLoader(torch_dataset(loader()), batch_size=None, num_workers=1))


@with_torchdata
def test_a_stateful_loader_goes_on_with_other_workers_and_ranks():
    from torchdata.stateful_dataloader import StatefulDataLoader

    def stateful(**options):
        return StatefulDataLoader(torch_dataset(loader(**options)), batch_size=None, num_workers=0)

    expected = loader()
    epochs = [list(expected), list(expected)]
    first = stateful(workers=1)
    head = list(islice(first, 4))
    state = json.loads(json.dumps(first.state_dict(), default=repr))
    again = stateful()
    again.load_state_dict(state)
    assert head + list(again) == epochs[0]
    assert list(again) == epochs[1]
    parts = []
    for rank in range(2):
        resumed = stateful(rank=rank, world_size=2)
        resumed.load_state_dict(state)
        parts.append([n for batch in resumed for n in batch])
    rest = [n for batch in epochs[0][4:] for n in batch]
    assert parts == [rest[0::2], rest[1::2]]


@with_torch
def test_tensors_are_moved_wherever_they_are_in_an_item():
    import torch

    one = torch.ones(2)
    items = [one, {"x": [one, 3], "s": "text"}, Pair(one, (one,))]
    moved = list(to_device(pin_memory(items), "meta"))
    assert moved[0].device.type == "meta"
    assert moved[1]["x"][0].device.type == "meta"
    assert (moved[1]["x"][1], moved[1]["s"]) == (3, "text")
    assert isinstance(moved[2], Pair)
    assert moved[2].y[0].device.type == "meta"
    assert one.device.type == "cpu"


@with_torch
def test_a_moved_loader_is_not_read_ahead():
    made = loader()
    for _ in islice(to_device(pin_memory(made), "cpu"), 3):
        pass
    alone = loader()
    list(islice(alone, 3))
    assert made.state_dict() == alone.state_dict()
