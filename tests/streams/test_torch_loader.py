"""Tests of dagster_dataops.streams.torch_loader, and of its adapter where torch is installed."""

import importlib.util
import json
import pickle
import sys
from itertools import chain, islice

import pytest

from dagster_dataops import errors, read_jsonl, read_sequence, torch_dataset

RECORDS = 64
pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy")  # not needed by torch


def has(*packages):
    return all(importlib.util.find_spec(package) for package in packages)


with_torch = pytest.mark.skipif(not has("torch"), reason="needs the extra 'torch'")
with_torchdata = pytest.mark.skipif(not has("torch", "torchdata"), reason="needs torch, torchdata")
loaders = [with_torchdata, pytest.mark.filterwarnings("ignore")]  # their own code causes warnings


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.jsonl"
    path.write_text("".join(f'{{"n":{n}}}\n' for n in range(RECORDS)))
    return path


@pytest.fixture
def make(source):
    return lambda at, among: read_jsonl(source).shuffle(0).shard(at, among)


def numbers(batches):
    return [record["n"] for batch in batches for record in batch]


# ---------------------------------------------------------------- without torch


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "dagster_dataops.streams.torch_dataset", raising=False)
    with pytest.raises(errors.MissingExtraError, match=r"pip install 'dagster-dataops\[torch\]'"):
        torch_dataset(lambda at, among: read_sequence([1]))


@pytest.mark.slow
def test_only_one_module_imports_torch(run_python):
    code = "import sys, dagster_dataops as d; [getattr(d, n) for n in d.__all__]"
    assert run_python(f"{code}; print('torch' in sys.modules)") == "False\n"


def test_invalid_arguments_are_refused():
    with pytest.raises(errors.StreamArgumentError, match="make_stream is a int"):
        torch_dataset(3)
    with pytest.raises(errors.StreamArgumentError, match="seed"):
        torch_dataset(lambda at, among: read_sequence([1]), seed=-1)


# ---------------------------------------------------------------- alone


@with_torch
def test_every_pass_is_an_epoch_in_another_order(make):
    dataset = torch_dataset(make)
    epochs = [[record["n"] for record in dataset] for _ in range(3)]

    assert [sorted(epoch) for epoch in epochs] == [list(range(RECORDS))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    again = torch_dataset(make)
    again.set_epoch(2)
    assert [record["n"] for record in again] == epochs[2]


@with_torch
def test_every_rank_reads_separate_records(make):
    ranks = [torch_dataset(make, rank=rank, world_size=3) for rank in range(3)]
    found = [[record["n"] for record in dataset] for dataset in ranks]

    assert sorted(chain(*found)) == list(range(RECORDS))
    assert [len(one) for one in found] == [22, 21, 21]


@with_torch
def test_the_rank_is_that_of_the_environment_or_the_process_group(make, monkeypatch, tmp_path):
    import torch

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert len(list(torch_dataset(make))) == RECORDS / 4
    store = f"file://{tmp_path}/group"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        assert len(list(torch_dataset(make))) == RECORDS
    finally:
        torch.distributed.destroy_process_group()


@with_torch
def test_an_iterator_resumes_at_any_position(make):
    dataset = torch_dataset(make)
    list(dataset)
    iterator, found = iter(dataset), []
    states = [json.dumps(iterator.state_dict())]
    for item in iterator:
        found.append(item)
        states.append(json.dumps(iterator.state_dict()))
    third = list(dataset)

    for at, state in enumerate(states):
        other = torch_dataset(make)
        again = iter(other)
        again.load_state_dict(json.loads(state))
        assert list(again) == found[at:]
        if at % 20 == 0:
            assert list(other) == third


@with_torch
def test_states_of_others_are_refused(make):
    state = iter(torch_dataset(make)).state_dict()
    other = iter(torch_dataset(make, rank=0, world_size=2))
    with pytest.raises(errors.StreamStateError, match=r"\(shard\) differs in its options"):
        other.load_state_dict(state)
    with pytest.raises(errors.StreamStateError, match="not the state of a dataset"):
        other.load_state_dict({"position": 1})


@with_torch
@pytest.mark.parametrize("options", [{"rank": 1}, {"world_size": 2}, {"rank": 2, "world_size": 2}])
def test_ranks_that_cannot_be_are_refused(make, options):
    with pytest.raises(errors.StreamDefinitionError, match="rank"):
        torch_dataset(make, **options)


@with_torch
def test_a_function_that_makes_no_builder_is_refused_at_once(make):
    with pytest.raises(errors.StreamDefinitionError, match="returned a DataPipeline; "):
        torch_dataset(lambda at, among: make(at, among).and_return())


@with_torch
def test_it_pickles_with_functions_that_pickle_does_not_know(make):
    copy = pickle.loads(pickle.dumps(torch_dataset(make, seed=3)))
    assert list(copy) == list(torch_dataset(make, seed=3))


@with_torch
def test_failed_items_are_skipped_on_request(source):
    def make(at, among):
        return read_jsonl(source).map(lambda record: {"n": 8 // (record["n"] % 8)})

    assert len(list(torch_dataset(make, on_error="skip"))) == RECORDS * 7 / 8
    with pytest.raises(ZeroDivisionError):
        list(torch_dataset(make))


# ---------------------------------------------------------------- in data loaders


def loader_of(make, workers, kind="StatefulDataLoader", **options):
    import torch.utils.data
    from torchdata.stateful_dataloader import StatefulDataLoader

    chosen = {"StatefulDataLoader": StatefulDataLoader, "DataLoader": torch.utils.data.DataLoader}
    dataset = torch_dataset(make, seed=5, **options.pop("dataset", {}))
    options = {"batch_size": 5, "collate_fn": list} | options
    return chosen[kind](dataset, num_workers=workers, **options)


def marked(*marks):
    return lambda test: [test := mark(test) for mark in marks][-1]


@marked(*loaders)
@pytest.mark.parametrize("kind", ["DataLoader", "StatefulDataLoader"])
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_loaders_read_each_record_once_an_epoch_whether_workers_stay_or_not(
    make, kind, workers, persistent
):
    if persistent and not workers:
        pytest.skip("there is no worker to stay")
    loader = loader_of(make, workers, kind, persistent_workers=persistent)
    epochs = [numbers(loader) for _ in range(3)]

    assert [sorted(epoch) for epoch in epochs] == [list(range(RECORDS))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    other = loader_of(make, workers, kind, persistent_workers=persistent)
    assert [numbers(other) for _ in range(3)] == epochs


@marked(*loaders)
def test_workers_that_stay_read_the_epochs_of_those_that_do_not(make):
    epochs = []
    for persistent in (False, True):
        loader = loader_of(make, 2, persistent_workers=persistent)
        epochs.append([numbers(loader) for _ in range(3)])
    assert epochs[0] == epochs[1]


@marked(*loaders)
@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (0, {}),
        (2, {}),
        (2, {"persistent_workers": True}),
        (2, {"snapshot_every_n_steps": 3}),
        (2, {"prefetch_factor": 4}),
    ],
    ids=["no workers", "workers", "workers that stay", "rare snapshots", "batches ahead"],
)
def test_training_resumes_after_any_batch_and_in_later_epochs(make, workers, options):
    first = loader_of(make, workers, **options)
    numbers(first)
    second, states = [], []
    for batch in first:
        second.append([record["n"] for record in batch])
        states.append(pickle.dumps(first.state_dict()))
    third = numbers(first)

    for at in range(1, len(states) + 1, 1 if workers == 0 else 5):
        loader = loader_of(make, workers, **options)
        loader.load_state_dict(pickle.loads(states[at - 1]))
        rest = [[record["n"] for record in batch] for batch in loader]
        if at < len(states):
            assert rest == second[at:]
        assert numbers(loader) == third


class _LazyModel:
    model = None

    def __call__(self, record):
        import torch

        if self.model is None:
            torch.manual_seed(0)
            self.model = torch.nn.Linear(1, 1)
        return record


@marked(*loaders)
@pytest.mark.parametrize(
    ("workers", "options"), [(0, {}), (2, {}), (2, {"persistent_workers": True})]
)
def test_a_model_that_the_first_record_loads_is_no_other_stream(source, workers, options):
    def loader():
        model = _LazyModel()
        return loader_of(
            lambda at, among: read_jsonl(source).shard(at, among).map(model), workers, **options
        )

    first = loader()
    numbers(first)
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    second = loader()
    second.load_state_dict(state)
    assert numbers(second) == numbers(batches)


@marked(*loaders)
def test_the_state_at_the_end_of_an_epoch_leads_to_the_next(make):
    first = loader_of(make, 2)
    numbers(first)
    state = first.state_dict()
    second = numbers(first)
    loader = loader_of(make, 2)
    loader.load_state_dict(state)

    assert numbers(loader) == second


@marked(*loaders)
def test_spawned_workers_are_sent_the_stream(make):
    forked = loader_of(make, 2)
    states = [forked.state_dict()]
    epochs = [numbers(forked), numbers(forked)]
    spawned = loader_of(make, 2, multiprocessing_context="spawn", persistent_workers=True)
    spawned.load_state_dict(states[0])

    assert [numbers(spawned), numbers(spawned)] == epochs


@marked(*loaders)
def test_lists_of_a_stream_are_batches(source):
    def make(at, among):
        return read_jsonl(source).shuffle(0).shard(at, among).bucket(7)

    loader = loader_of(make, 2, batch_size=None, collate_fn=None)
    found = [len(batch) for batch in loader]
    assert sum(found) == RECORDS
    assert set(found) == {7, 4}


@marked(*loaders)
def test_an_epoch_that_is_broken_off_counts(make):
    whole = loader_of(make, 2)
    epochs = [numbers(whole) for _ in range(2)]
    loader = loader_of(make, 2)
    list(islice(loader, 2))
    assert numbers(loader) == epochs[1]
