import gzip
import json
import os
from functools import partial
from itertools import islice

import pytest

from dagster_dataops import (
    Batch,
    DefaultTaskEncoder,
    MapDataset,
    SkipSample,
    WorkerConfig,
    edataclass,
    get_loader,
    get_savable_loader,
    get_train_dataset,
    get_val_dataset,
    log_exception,
    merged_states,
    prepare_energon,
    reraise_exception,
    restore_record,
)
from dagster_dataops.errors import (
    DataPipelineError,
    StreamArgumentError,
    StreamDefinitionError,
    StreamStateError,
    UnknownSampleError,
)
from tests.each import each
from tests.training.cooking.mixtures import cook_text, dataset, written


@edataclass
class TextBatch(Batch):
    text: list[str]


class Texts(DefaultTaskEncoder):
    cookers = (cook_text,)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset(tmp_path / "a", 20)
    return tmp_path


def train(folder, rank=0, world_size=1, num_workers=0, **options):
    config = WorkerConfig(rank=rank, world_size=world_size, num_workers=num_workers)
    return get_train_dataset(
        folder / "a",
        worker_config=config,
        **{"task_encoder": Texts(raw_batch_type=TextBatch), "batch_size": 4, **options},
    )


def keys(batches):
    return [batch["__key__"] for batch in batches]


# ---------------------------------------------------------------- ranks and workers


@pytest.mark.parametrize("num_workers", [0, 2])
def test_ranks_share_the_batches_of_one_rank(folder, num_workers):
    options = {"max_samples_per_sequence": 3}
    alone = keys(islice(get_savable_loader(train(folder, batch_size=8, **options)), 6))
    shared = [
        keys(islice(get_savable_loader(train(folder, rank, 2, num_workers, **options)), 6))
        for rank in range(2)
    ]

    assert [sorted(a + b) for a, b in zip(*shared, strict=True)] == [sorted(one) for one in alone]


ORDERS = [
    {},
    {"max_samples_per_sequence": 3},
    {"shuffle_buffer_size": 7},
    {"shuffle_buffer_size": 7, "max_samples_per_sequence": 3},
]


def global_batches(folder, world_size, batch_size, num_workers=0, **options):
    """Return the samples of each training step: 8, of all ranks together."""
    per_rank = []
    for rank in range(world_size):
        data = train(folder, rank, world_size, num_workers, batch_size=batch_size, **options)
        with get_savable_loader(data) as loader:
            taken = [
                key
                for batch in keys(islice(loader, 80 // world_size // batch_size))
                for key in batch
            ]
        per_rank.append(taken)
    each = 8 // world_size
    return [
        sorted(key for taken in per_rank for key in taken[at : at + each])
        for at in range(0, 80 // world_size, each)
    ]


@each("options", ORDERS)
@pytest.mark.slow
def test_the_samples_of_a_step_depend_neither_on_ranks_nor_on_workers(folder, options):
    expected = global_batches(folder, 1, 8, **options)

    assert global_batches(folder, 1, 2, 2, **options) == expected
    assert global_batches(folder, 2, 2, **options) == expected
    assert global_batches(folder, 4, 1, **options) == expected
    assert len({key for step in expected[:5] for key in step}) == 20


class Listing(Texts):
    def batch(self, samples):
        return {"__key__": [sample["__key__"] for sample in samples]}


@each("task_encoder", [Texts(raw_batch_type=TextBatch), Listing()])
@each("options", ORDERS)
@pytest.mark.slow
def test_a_state_can_be_loaded_by_another_number_of_ranks(folder, options, task_encoder):
    options = {**options, "task_encoder": task_encoder, "batch_size": 2}

    def loaders(number):
        return [
            get_savable_loader(train(folder, rank, number, **options)) for rank in range(number)
        ]

    def samples(loaders, count):
        each_rank = [keys(islice(loader, count // len(loaders))) for loader in loaders]
        return sorted(key for batches in each_rank for batch in batches for key in batch)

    for before, after in ((1, 2), (2, 1), (2, 4), (4, 2), (2, 3)):
        first, alone = loaders(before), loaders(1)
        samples(first, 4 * before)
        samples(alone, 4 * before)
        states = [json.loads(json.dumps(loader.save_state_rank())) for loader in first]
        second = loaders(after)
        for loader in second:
            loader.restore_state_global({"states": states})
        assert samples(second, 12) == samples(alone, 12), (before, after)


def test_the_state_of_one_rank_of_several_is_for_this_rank(folder):
    states = []
    for rank in range(2):
        loader = get_savable_loader(train(folder, rank, 2))
        next(iter(loader))
        states.append(loader.save_state_rank())
    for rank, number in ((1, 2), (0, 3), (0, 1)):
        other = get_savable_loader(train(folder, rank, number))
        reason = rf"rank 0 of 2, this is rank {rank} of {number}, .* positions( \(on_error|: load)"
        with pytest.raises(StreamStateError, match=reason):
            other.restore_state_rank(states[0])
        other.restore_state_rank(merged_states(states))


def test_the_workers_of_one_rank_cook_and_encode(folder):
    class Here(Listing):
        def encode_sample(self, sample):
            return {**sample, "process": os.getpid()}

        def batch(self, samples):
            return {**super().batch(samples), "processes": {one["process"] for one in samples}}

    with get_savable_loader(train(folder, task_encoder=Here(), num_workers=2)) as loader:
        processes = set().union(*(batch["processes"] for batch in islice(loader, 30)))

    assert processes
    assert os.getpid() not in processes


def test_loops_go_on_where_the_last_one_was_left(folder):
    finite = get_savable_loader(train(folder, repeat=False))
    assert [len(keys(islice(finite, 2))), len(keys(finite)), len(keys(finite))] == [2, 3, 5]
    loader = get_savable_loader(train(folder))
    found = keys(islice(loader, 3)) + keys(islice(loader, 4))
    assert found == keys(islice(get_savable_loader(train(folder)), 7))
    loader.seed(3)
    assert keys(islice(loader, 1)) == found[:1]


def test_a_config_describes_its_process_and_checks_its_values():
    config = WorkerConfig.default_worker_config(num_workers=3)
    place = {"rank": 0, "world_size": 1, "num_workers": 3}
    assert config.config() == {**place, "data_parallel_group": None}
    assert config == WorkerConfig(rank=0, world_size=1, num_workers=3, seed_offset=4)
    with pytest.raises(StreamDefinitionError, match="below world_size"):
        WorkerConfig(rank=2, world_size=2, num_workers=0)
    with pytest.raises(StreamDefinitionError, match="num_workers"):
        WorkerConfig(rank=0, world_size=1, num_workers=-1)
    with pytest.raises(StreamArgumentError, match="seed_offset"):
        WorkerConfig(rank=0, world_size=1, num_workers=0, seed_offset=-1)
    with pytest.raises(StreamArgumentError, match="give a function"):
        WorkerConfig(rank=0, world_size=1, num_workers=0, global_error_handler="skip")


def test_the_seed_offset_is_the_seed_of_the_order(folder):
    def order(seed):
        config = WorkerConfig(rank=0, world_size=1, num_workers=0, seed_offset=seed)
        data = train(folder, max_samples_per_sequence=2)
        data.worker_config = config
        return keys(islice(get_savable_loader(data), 5))

    assert order(1) == order(1) != order(2)


class Failing(DefaultTaskEncoder):
    cookers = (cook_text,)

    def encode_sample(self, sample):
        number = int(sample.text.split()[1])
        if number == 1:
            raise SkipSample
        return {"n": 1 / number}


def failing(folder, handler, num_workers=0, **options):
    config = WorkerConfig(
        rank=0, world_size=1, num_workers=num_workers, global_error_handler=handler
    )
    data = get_val_dataset(
        folder / "a", split_part="train", task_encoder=Failing(), worker_config=config
    )
    return list(get_savable_loader(data, **options))


@pytest.mark.parametrize(("handler", "count"), [(log_exception, 18), (reraise_exception, None)])
def test_the_error_handler_decides_about_failed_samples(folder, handler, count, caplog):
    if count is None:
        with pytest.raises(ZeroDivisionError):
            failing(folder, handler)
        return
    assert len(failing(folder, handler)) == count
    assert len([one for one in caplog.records if "skipped" in one.message]) == 1
    assert len(failing(folder, handler, on_error="quarantine")) == count


class Failures(list):
    """An object that can be called, and has no hash."""

    def __call__(self, *failure):
        self.append(failure)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("handler", [lambda failures: failures, lambda failures: failures.__call__])
def test_an_error_handler_gets_failed_samples_and_their_sources(folder, workers, handler):
    failures = Failures()
    assert len(failing(folder, handler(failures), workers)) == 18
    ((error, sample, sources),) = failures
    assert isinstance(error, ZeroDivisionError)
    assert sample.text.split()[1] == "0"
    assert sources == sample["__sources__"]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_the_error_handler_ends_the_loader(folder, workers):
    def refuse(error, sample, sources):
        raise KeyError(sample.__key__, len(sources)) from error

    with pytest.raises(KeyError, match="1"):
        failing(folder, refuse, workers)


class OtherRank:
    """A group of two ranks, of which the other one has its values already."""

    def __init__(self, gathered=(), sent=None):
        self._gathered, self._sent = gathered, sent

    def all_gather_object(self, values, value, group):
        values[:] = [value if other is None else other for other in self._gathered]

    def broadcast_object_list(self, values, src, group):
        values[0] = self._sent


def test_the_positions_of_all_ranks_are_saved_and_restored(folder, monkeypatch):
    def loader(rank, size=2):
        return get_savable_loader(train(folder, rank=rank, world_size=size))

    def join(group):
        monkeypatch.setattr(
            "dagster_dataops.training.loading.worker_config.torch_group", lambda: group
        )

    loaders = loader(0), loader(1)
    for one in loaders:
        next(iter(one))
    with pytest.raises(StreamArgumentError, match=r"torch\.distributed"):
        loaders[0].save_state_global()
    join(OtherRank([None, loaders[1].state_dict()]))
    state = loaders[0].save_state_global(global_dst_rank=0)
    assert loaders[0].save_state_global(global_dst_rank=1) is None
    expected = [keys(islice(one, 2)) for one in loaders]

    again = loader(0), loader(1)
    again[0].restore_state_global(json.loads(json.dumps(state)))
    join(OtherRank(sent=state))
    again[1].restore_state_global(None, src_rank=0)
    assert [keys(islice(one, 2)) for one in again] == expected
    loader(0, 1).restore_state_global(state)
    with pytest.raises(StreamArgumentError, match="src_rank"):
        loaders[1].restore_state_global(None)


def test_error_handlers_log_or_raise(caplog):
    log_exception(ValueError("x"), {"__key__": "k"}, None)
    assert "sample k failed: ValueError('x')" in caplog.text
    with pytest.raises(ValueError, match="x"):
        reraise_exception(ValueError("x"), None, None)


# ---------------------------------------------------------------- options of loaders


def test_options_of_energon_that_are_not_needed_are_accepted(folder):
    loader = get_savable_loader(
        train(folder),
        checkpoint_every_sec=60,
        checkpoint_every_min_n_samples=1,
        n_checkpoints=3,
        gc_collect_every_n_steps=10,
        prefetch_factor=2,
        watchdog_timeout_seconds=60,
        watchdog_initial_timeout_seconds=None,
        fail_on_timeout=False,
    )
    assert len(next(iter(loader))["__key__"]) == 4
    with pytest.raises(TypeError, match="no option 'checkpoint_every'"):
        get_savable_loader(train(folder), checkpoint_every=1)
    assert get_loader is get_savable_loader


@each(
    "other",
    [{"num_workers": 5}, {"seed_offset": 3}, {"global_error_handler": reraise_exception}],
)
def test_a_worker_config_must_be_that_of_the_dataset(folder, other):
    given = WorkerConfig(**{"rank": 0, "world_size": 1, "num_workers": 0, **other})
    for use in (get_savable_loader, partial(MapDataset, map_fn=len)):
        with pytest.raises(StreamArgumentError, match="differs from that of the dataset"):
            use(train(folder), worker_config=given)


def test_options_without_effect_are_named_in_the_log(folder, caplog):
    data = train(folder, shuffle_over_epochs_multiplier=-1)
    get_savable_loader(data, prefetch_factor=2, checkpoint_every_sec=60)
    ignored = {"worker_debug_path": "x", "worker_log_level": 1, "restore_error_handler": print}
    WorkerConfig(rank=0, world_size=1, num_workers=0, **ignored)

    lead = "these options of Energon have no effect:"
    assert caplog.messages == [
        f"get_train_dataset: {lead} shuffle_over_epochs_multiplier",
        f"get_savable_loader: {lead} checkpoint_every_sec, prefetch_factor",
        f"WorkerConfig: {lead} restore_error_handler, worker_debug_path, worker_log_level",
    ]
    config = WorkerConfig(rank=0, world_size=1, num_workers=0)
    get_savable_loader(train(folder), worker_config=config)
    assert len(caplog.messages) == 3


def test_a_batch_is_made_again_by_the_loader(folder):
    loader = get_savable_loader(train(folder, num_workers=2))
    batch = list(islice(loader, 3))[2]
    state = loader.save_state_rank()

    assert loader.restore_sample(batch["__restore_key__"]) == batch
    assert loader.save_state_rank() == state
    loader.restore_state_rank(None)
    assert loader.save_state_rank() == state


# ---------------------------------------------------------------- virtual epochs


@pytest.mark.parametrize("num_workers", [0, 2])
def test_loops_go_on_where_the_last_virtual_epoch_ended(folder, num_workers):
    data = train(folder, num_workers=num_workers, virtual_epoch_length=3)
    whole = keys(islice(get_savable_loader(train(folder)), 12))
    loader = get_savable_loader(data)

    assert [len(data), len(loader)] == [3, 3]
    loops = [keys(islice(loader, 1)), *(keys(loader) for _ in range(4))]
    assert [len(loop) for loop in loops] == [1, 2, 3, 3, 3]
    assert [key for loop in loops for key in loop] == whole


def test_a_state_is_within_a_virtual_epoch(folder):
    data = train(folder, virtual_epoch_length=4)
    loader = get_savable_loader(data)
    list(loader)
    items = iter(loader)
    next(items)
    state = json.loads(json.dumps(loader.save_state_rank()))
    rest = [keys(items), keys(loader)]
    other = get_savable_loader(data)
    other.restore_state_rank(state)

    assert [len(one) for one in rest] == [3, 4]
    assert [keys(other), keys(other)] == rest
    with pytest.raises(StreamStateError, match="virtual_epoch"):
        other.restore_state_rank({**state, "virtual_epoch": "x"})


def test_a_virtual_epoch_ends_with_data_that_ends(folder):
    loader = get_savable_loader(train(folder, virtual_epoch_length=4, repeat=False))
    assert [len(keys(loader)) for _ in range(4)] == [4, 1, 4, 1]
    with pytest.raises(StreamDefinitionError, match="virtual_epoch_length"):
        train(folder, virtual_epoch_length=-1)


# ---------------------------------------------------------------- lengths


@pytest.mark.parametrize(("world_size", "lengths"), [(1, [7]), (2, [4, 4]), (3, [3, 3, 2])])
def test_the_length_is_the_number_of_items_of_a_rank(folder, world_size, lengths):
    found = []
    for rank in range(world_size):
        config = WorkerConfig(rank=rank, world_size=world_size, num_workers=0)
        data = get_val_dataset(
            folder / "a",
            split_part="train",
            task_encoder=Texts(),
            batch_size=3,
            worker_config=config,
        )
        loader = get_savable_loader(data)
        found.append(len(data))
        assert len(loader) == len(data) == len(list(loader))
    assert found == lengths


def test_the_length_of_a_mixture_is_that_of_its_datasets(folder):
    dataset(folder / "b", 5)
    blend = "    blend: [{path: a}, {path: b}]\n"
    path = written(
        folder,
        f"  train:\n{blend}  val:\n{blend}"
        "  few:\n    blend_epochized: [{path: a, repetitions: 0.5}, {path: b, repetitions: 2}]\n"
        "  part: {path: a, subset: {range: [2, 9]}}\n",
    )
    lengths = {"train": 25, "few": 20, "part": 7}
    for split, length in lengths.items():
        assert len(get_train_dataset(path, split_part=split, task_encoder=Texts())) == length
    data = get_val_dataset(path, task_encoder=Texts(), batch_size=4, batch_drop_last=True)
    assert len(data) == len(list(data)) == 6
    assert len(get_val_dataset(path, task_encoder=Texts(), limit=3)) == 3


def test_the_number_of_packs_and_of_batches_of_groups_is_not_known(folder):
    class Packs(Texts):
        def select_samples_to_pack(self, samples):
            return [samples]

        def pack_selected_samples(self, samples):
            return {"n": len(samples)}

    data = get_train_dataset(
        folder / "a", task_encoder=Packs(), packing_buffer_size=8, repeat=False
    )
    with pytest.raises(TypeError, match="known when they are made"):
        len(data)
    assert [one["n"] for one in data] == [8, 8, 4]


# ---------------------------------------------------------------- steps


class Grouping(DefaultTaskEncoder):
    cookers = (cook_text,)

    def batch_group_criterion(self, sample):
        number = int(sample.text.split()[1])
        return ("even", number % 2 == 0), 2 + number % 2

    def batch(self, samples):
        return TextBatch.from_samples(samples)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_have_samples_of_one_group(folder, num_workers):
    data = train(folder, task_encoder=Grouping(), batch_size=None, num_workers=num_workers)
    loader = get_savable_loader(data)
    batches = list(islice(loader, 20))

    assert batches[0].text == ["a 0", "a 2"]
    assert batches[1].text == ["a 1", "a 3", "a 5"]
    assert {len({int(one) % 2 for one in batch["__key__"]}) for batch in batches} == {1}
    state = json.loads(json.dumps(loader.save_state_rank()))
    rest = list(islice(loader, 10))
    other = get_savable_loader(data)
    other.restore_state_rank(state)
    assert list(islice(other, 10)) == rest
    assert other.restore_sample(rest[3]["__restore_key__"]) == rest[3]


def test_the_last_batches_of_groups_are_kept_or_dropped(folder):
    def texts(**options):
        data = get_val_dataset(folder / "a", split_part="train", task_encoder=Grouping(), **options)
        return [batch.text for batch in data]

    assert texts()[-1] == ["a 19"]
    assert len(texts(batch_drop_last=True)) == len(texts()) - 1
    with pytest.raises(ValueError, match="in one of the two"):
        texts(batch_size=4)


def test_a_sample_that_waits_for_its_batch_needs_its_keys(folder):
    class Keyless(Grouping):
        def encode_sample(self, sample):
            return type(sample)(text=sample.text)

    loader = get_savable_loader(train(folder, task_encoder=Keyless(), batch_size=None))
    next(iter(loader))
    with pytest.raises(StreamStateError, match="no __restore_key__"):
        loader.save_state_rank()


class Counting(DefaultTaskEncoder):
    cookers = (cook_text,)

    def encode_sample(self, sample):
        return {**sample, "sample": self.current_sample_index}

    def batch(self, samples):
        return {"samples": [one["sample"] for one in samples], "batch": self.current_batch_index}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_steps_know_the_number_of_their_sample_and_batch(folder, num_workers):
    data = train(folder, task_encoder=Counting(), num_workers=num_workers)
    loader = get_savable_loader(data)
    batches = list(islice(loader, 7))

    assert [one["batch"] for one in batches] == list(range(7))
    assert [n for one in batches for n in one["samples"]] == list(range(28))
    state = loader.save_state_rank()
    other = get_savable_loader(data)
    other.restore_state_rank(state)
    assert next(iter(other)) == {"samples": [28, 29, 30, 31], "batch": 7}


class Early(DefaultTaskEncoder):
    """Every step before `batch` notes the number of the batch."""

    cookers = (cook_text,)

    def encode_sample(self, sample):
        number = int(sample.text.split()[1])
        if number % 5 == 3:
            raise SkipSample
        return {**sample, "batch": self.position(), "sample": self.current_sample_index}

    def position(self):
        return self.current_batch_index

    def batch(self, samples):
        return {
            "batches": {self.current_batch_index, *(one["batch"] for one in samples)},
            "samples": [one["sample"] for one in samples],
        }


class Packed(Early):
    def select_samples_to_pack(self, samples):
        return [[sample] for sample in samples[::2]]

    def pack_selected_samples(self, samples):
        return {**samples[0], "batch": self.current_batch_index}

    encode_sample = None

    def preencode_sample(self, sample):
        return {**sample, "sample": self.current_sample_index}


class InGroups(Early):
    def batch_group_criterion(self, sample):
        return self.current_batch_index % 2, 3

    def encode_sample(self, sample):
        return {**sample, "sample": self.current_sample_index}

    def batch(self, samples):
        return {"batches": {self.current_batch_index}, "n": len(samples)}


EARLY = [
    (Early, {}),
    (Early, {"shuffle_buffer_size": 7}),
    (Packed, {"packing_buffer_size": 5}),
    (InGroups, {"batch_size": None}),
]


@each("case", EARLY)
@each("world_size", [1, 2])
@pytest.mark.slow
def test_steps_before_the_batch_know_its_number(folder, case, world_size):
    kind, options = case
    options = {"task_encoder": kind(), "batch_size": 4, **options}

    def loader(rank, num_workers):
        return get_savable_loader(train(folder, rank, world_size, num_workers, **options))

    for rank in range(world_size):
        with loader(rank, 0) as first:
            head = list(islice(first, 6))
            state = json.loads(json.dumps(first.save_state_rank()))
            everything = head + list(islice(first, 6))
        assert [batch["batches"] for batch in everything] == [{n} for n in range(12)]
        with loader(rank, 2) as again:
            assert list(islice(again, 3)) == everything[:3]
            again.restore_state_rank(state)
            assert list(islice(again, 6)) == everything[6:]


class Parted(DefaultTaskEncoder):
    cookers = (cook_text,)

    def encode_sample(self, sample):
        for _ in range(int(sample.text.split()[1]) % 3):
            yield {"sample": self.current_sample_index, "batch": self.current_batch_index}


@each("num_workers", [0, 2])
def test_generators_know_the_numbers_at_their_start(folder, num_workers):
    data = train(folder, task_encoder=Parted(), num_workers=num_workers)
    with get_savable_loader(data) as loader:
        batches = [[tuple(item.values()) for item in batch] for batch in islice(loader, 3)]

    assert batches == [
        [(1, 0), (2, 0), (2, 0), (4, 0)],
        [(5, 1), (5, 1), (7, 1), (8, 1)],
        [(8, 1), (10, 2), (11, 2), (11, 2)],
    ]


def test_samples_are_numbered_among_all_ranks(folder):
    numbers = []
    for rank in range(2):
        with get_savable_loader(train(folder, rank, 2, task_encoder=Early())) as loader:
            numbers += [n for batch in islice(loader, 3) for n in batch["samples"]]

    assert len(numbers) == len(set(numbers))
    assert {n % 2 for n in numbers[: len(numbers) // 2]} == {0}


class Mixin:
    def position(self):
        return self.current_sample_index


class Mixed(Mixin, DefaultTaskEncoder):
    cookers = (cook_text,)

    @property
    def place(self):
        return self.current_batch_index

    def encode_sample(self, sample):
        return {"sample": self.position(), "batch": self.place}


def test_methods_of_mixins_and_properties_know_the_numbers(folder):
    batches = islice(get_savable_loader(train(folder, task_encoder=Mixed())), 3)

    assert [[tuple(one.values()) for one in batch] for batch in batches] == [
        [(0, 0), (1, 0), (2, 0), (3, 0)],
        [(4, 1), (5, 1), (6, 1), (7, 1)],
        [(8, 2), (9, 2), (10, 2), (11, 2)],
    ]


def test_the_numbers_of_samples_and_batches_are_not_known_elsewhere(folder):
    for name in ("current_batch_index", "current_sample_index"):
        with pytest.raises(DataPipelineError, match=f"{name} is known while steps"):
            getattr(Counting(), name)


class Several(DefaultTaskEncoder):
    cookers = (cook_text,)

    def encode_sample(self, sample):
        for number in range(int(sample.text.split()[1]) % 3):
            yield f"{sample.text}.{number}"

    def encode_batch(self, batch):
        yield batch
        yield len(batch)


def test_steps_can_be_generators(folder):
    data = train(folder, task_encoder=Several(), repeat=False)
    items = list(data)

    assert items[:2] == [["a 1.0", "a 2.0", "a 2.1", "a 4.0"], 4]
    assert (
        list(get_savable_loader(train(folder, task_encoder=Several(), repeat=False, num_workers=2)))
        == items
    )


class Chapters(DefaultTaskEncoder):
    """Each step makes several items of one."""

    cookers = (cook_text,)

    def __init__(self):
        super().__init__(raw_batch_type=TextBatch)

    def encode_sample(self, sample):
        for part in range(int(sample.text.split()[1]) % 3):
            yield type(sample).derive_from(sample, text=f"{sample.text}.{part}")

    def postencode_sample(self, sample):
        yield sample
        yield sample

    def encode_batch(self, batch):
        yield batch
        yield TextBatch.derive_from(batch, text=batch.text[::-1])


class IndexedChapters(Chapters):
    @property
    def number(self):
        """A method that names an index: steps are called with it."""
        return self.current_sample_index


@each("task_encoder", [Chapters(), IndexedChapters()])
def test_items_of_generators_are_restored_by_their_keys(folder, task_encoder):
    loader = get_savable_loader(train(folder, task_encoder=task_encoder, repeat=False))
    items = list(loader)
    keys = [json.dumps(item.__restore_key__) for item in items]

    assert len(set(keys)) == len(keys) == 20
    assert [loader.restore_sample(json.loads(key)) for key in keys] == items
    first = items[0].__restore_key__[0]
    assert first[2:] == ["0001", 0, 0]
    assert loader.restore_sample(first).text == "a 1.0"
    for wrong in ([*first[:3], 7, 0], first[:3], [*items[0].__restore_key__[:-1], 2]):
        with pytest.raises(UnknownSampleError):
            loader.restore_sample(wrong)


def test_items_of_generators_are_restored_from_mixtures(folder):
    dataset(folder / "b", 8)
    text = "".join(
        f"      - {{path: {name}, subflavors: {{n: {n}}}}}\n" for n, name in enumerate("aba")
    )
    loader = get_savable_loader(
        get_train_dataset(
            written(folder, f"  train:\n    blend:\n{text}"),
            task_encoder=Chapters(),
            batch_size=3,
            shuffle_buffer_size=7,
        )
    )
    items = list(islice(loader, 30))

    assert [loader.restore_sample(item.__restore_key__) for item in items] == items


class Stepwise(DefaultTaskEncoder):
    cookers = (cook_text,)

    def preencode_sample(self, sample):
        return type(sample).derive_from(sample, text=sample.text + " pre")

    def postencode_sample(self, sample):
        return sample.text + " post"


def test_steps_before_and_after_packing_run_without_packing_too(folder):
    data = get_val_dataset(folder / "a", split_part="train", task_encoder=Stepwise())
    assert next(iter(data)) == "a 0 pre post"


def test_a_function_changes_the_items_of_a_dataset(folder):
    texts = MapDataset(train(folder), lambda batch: batch.text)
    assert next(iter(texts)) == ["a 0", "a 1", "a 2", "a 3"]
    assert next(iter(get_savable_loader(texts))) == ["a 0", "a 1", "a 2", "a 3"]
    assert len(texts) == 5
    data = get_val_dataset(folder / "a", split_part="train", task_encoder=Texts())
    shouted = MapDataset(data, lambda sample: {**sample, "text": sample.text.upper()})
    one = next(iter(shouted))
    assert restore_record(shouted, one["__restore_key__"]) == one


# ---------------------------------------------------------------- shuffled runs


def test_runs_are_shuffled_anew_in_each_epoch(folder):
    def epochs(longest, **options):
        data = train(folder, batch_size=20, max_samples_per_sequence=longest, **options)
        return keys(islice(data, 3))

    for longest in (1, 3, None):
        found = epochs(longest, parallel_shard_iters=1)
        assert all(sorted(one) == [f"{n:04d}" for n in range(20)] for one in found)
    assert len({tuple(one) for one in epochs(3)}) == 3
    assert epochs(0) == epochs(3, shuffle_over_epochs_multiplier=None)
    runs = [[int(one) for one in epoch] for epoch in epochs(5, parallel_shard_iters=1)]
    assert all(one[at] + 1 == one[at + 1] for one in runs for at in range(19) if one[at] % 5 < 4)
    shards = {tuple(one) for one in epochs(None, parallel_shard_iters=1)}
    assert shards <= {tuple(f"{(n + start) % 20:04d}" for n in range(20)) for start in (0, 10)}


@pytest.mark.parametrize("options", [{}, {"batch_size": None}])
def test_shuffled_runs_resume_anywhere(folder, options):
    dataset(folder / "b", 7)
    path = written(
        folder,
        "  train:\n    blend:\n      - {path: a, subset: {range: [3, 17]}}\n      - {path: b}\n",
    )

    def loader():
        data = get_train_dataset(
            path, task_encoder=Texts(), max_samples_per_sequence=4, parallel_shard_iters=2
        )
        return get_savable_loader(data)

    whole = keys(islice(loader(), 60))
    for at in (1, 13, 14, 15, 40):
        first, second = loader(), loader()
        list(islice(first, at))
        second.restore_state_rank(json.loads(json.dumps(first.save_state_rank())))
        assert keys(islice(second, 60 - at)) == whole[at:]


def test_runs_need_shards_that_are_read_by_number(folder):
    plain = (folder / "a" / "s-0.tar").read_bytes()
    (folder / "z").mkdir()
    (folder / "z" / "s.tar.gz").write_bytes(gzip.compress(plain))
    data = get_train_dataset(folder / "z", task_encoder=Texts(), max_samples_per_sequence=4)
    with pytest.raises(StreamDefinitionError, match="use shuffle_buffer_size"):
        next(iter(data))


# ---------------------------------------------------------------- the configuration


def double(sample):
    return [sample, sample]


def test_a_loader_describes_its_configuration_as_json(folder):
    text = "  train:\n    blend:\n      - {path: a, weight: 3}\n      - {path: b, weight: 1}\n"
    dataset(folder / "b", 2)
    data = get_train_dataset(
        written(folder, text), task_encoder=Listing(), batch_size=4, shuffle_buffer_size=7
    )
    config = get_savable_loader(data, num_workers=2, seed=5).config()

    assert json.loads(json.dumps(config)) == config
    assert config == {
        "type": "SavableLoader",
        "num_workers": 2,
        "seed": 5,
        "dataset": data.config(),
    }
    batch = config["dataset"]["stream"]
    assert batch["functions"][0] == "tests.library.test_savable_loader.Listing.batch"
    shuffle = batch["source"]["source"]["source"]
    assert (shuffle["type"], shuffle["shuffle_window"]) == ("shuffle", 7)
    blend = shuffle["source"]
    assert blend["weights"] == [0.75, 0.25]
    datasets = [leaf["source"]["dataset"] for leaf in blend["sources"]]
    assert datasets == [str(folder / "a"), str(folder / "b")]


def test_the_configuration_of_other_options_and_functions_is_another_one(folder):
    configs = [
        train(folder).config(),
        train(folder, rank=1, world_size=2).config(),
        train(folder, batch_size=5).config(),
        train(folder, shuffle_buffer_size=2).config(),
        train(folder, max_samples_per_sequence=2).config(),
        train(folder, virtual_epoch_length=2).config(),
        train(folder, task_encoder=Listing()).config(),
        MapDataset(train(folder), double).config(),
        MapDataset(train(folder), partial(double)).config(),
    ]

    assert len({json.dumps(config) for config in configs}) == len(configs)
    assert configs[0] == train(folder).config()


def test_the_configuration_of_another_split_is_another_one(folder):
    prepare_energon(folder / "a", split={"train": 1, "val": 1})
    stages = [
        get_val_dataset(folder / "a", split_part=part, task_encoder=Texts()).config()["stream"]
        for part in ("train", "val")
    ]
    sources = [stage["source"] for stage in stages]

    assert [source["shards"] for source in sources] == [["s-0.tar"], ["s-1.tar"]]


def test_the_configuration_names_functions_without_addresses(folder):
    class Here(Texts):
        cookers = (partial(cook_text),)

    text = json.dumps(train(folder, task_encoder=Here()).config())
    assert "partial of tests.training.cooking.mixtures.cook_text" in text
    assert " at 0x" not in text


def test_the_configuration_hides_secrets(folder):
    labels = "{source: 'https://me:sesame@host.example/a', api_key: opensesame}"
    text = f"  train:\n    path: a\n    subflavors: {labels}\n"
    config = get_train_dataset(written(folder, text), task_encoder=Texts()).config()

    assert "host.example/a" in json.dumps(config)
    assert "sesame" not in json.dumps(config)


def test_a_loader_without_a_dataset_has_no_configuration(folder):
    loader = type(get_savable_loader(train(folder)))(train(folder).stream())
    with pytest.raises(StreamArgumentError, match="get_savable_loader"):
        loader.config()
