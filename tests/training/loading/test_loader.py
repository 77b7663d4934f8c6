"""Tests of dagster_dataops.training.loading.loader: epochs, seeds and positions."""

import gc
import json
import runpy
import threading
from itertools import islice

import pytest

from dagster_dataops import (
    DataLoader2,
    DistributedReadingService,
    InProcessReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    graphs,
    read_jsonl,
    read_sequence,
)
from dagster_dataops.errors import (
    DataPipelineError,
    InputError,
    StreamArgumentError,
    StreamStateError,
    UnusedStreamWarning,
)
from tests.streams.functions import double, fails_at_5, fails_on_thirds
from tests.training.loading.recording import Recording, Remembering


def stream(count=10):
    return read_sequence(list(range(count))).shuffle(0).sharding_filter().map(double)


def copied(state):
    return json.loads(json.dumps(state))


# ---------------------------------------------------------------- epochs and seeds


def test_each_iterator_is_an_epoch_in_another_order():
    loader = DataLoader2(stream())
    epochs = [list(loader) for _ in range(3)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(0, 20, 2))] * 3
    assert len(set(map(tuple, epochs))) == 3
    assert [list(again) for again in [DataLoader2(stream())] * 3] == epochs


def test_the_first_epoch_is_the_stream_itself():
    assert list(DataLoader2(stream())) == list(stream())
    loader = DataLoader2(stream())
    loader.seed(7)
    assert list(loader) == list(stream().and_return(seed=7))


def test_a_seed_begins_with_its_first_epoch():
    loader = DataLoader2(stream())
    loader.seed(7)
    first, second = list(loader), list(loader)
    loader.seed(7)
    assert (list(loader), list(loader)) == (first, second)
    loader.seed(8)
    assert list(loader) != first


def test_a_seed_set_while_reading_holds_from_the_next_iterator_on():
    loader = DataLoader2(stream())
    expected = list(DataLoader2(stream()))
    items = iter(loader)
    head = list(islice(items, 4))
    loader.seed(7)
    assert loader.state_dict()["seed"] == 0
    assert head + list(items) == expected
    assert list(loader) == list(stream().and_return(seed=7))


@pytest.mark.parametrize("seed", [None, -1, 2**64, "1", True])
def test_invalid_seeds_are_refused(seed):
    with pytest.raises(StreamArgumentError, match=r"seed is .*from 0 to 2\^64 - 1"):
        DataLoader2(stream()).seed(seed)


def test_seed_0_is_a_seed():
    loader = DataLoader2(stream().and_return(seed=9))
    loader.seed(0)
    assert list(loader) == list(stream())


def test_a_finished_stream_keeps_its_options():
    finished = read_sequence([1, 5, 2]).map(fails_at_5).and_return(on_error="skip", seed=3)
    loader = DataLoader2(finished)
    assert list(loader) == [1, 2]
    assert loader.state_dict()["seed"] == 3
    assert list(finished) == [1, 2]


def test_adapters_change_the_stream():
    def twice(given):
        return given.map(double)

    assert sorted(DataLoader2(stream(3), twice)) == [0, 4, 8]
    assert sorted(DataLoader2(stream(3), [twice, twice])) == [0, 8, 16]


def test_what_is_no_stream_is_refused():
    with pytest.raises(StreamArgumentError, match="datapipe is a list"):
        DataLoader2([1, 2])
    with pytest.raises(StreamArgumentError, match="give an instance"):
        DataLoader2(stream(), reading_service=InProcessReadingService)
    with pytest.raises(StreamArgumentError, match="int is no reading service"):
        DataLoader2(stream(), reading_service=3)


# ---------------------------------------------------------------- positions


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_loader_goes_on_at_any_item_in_any_epoch(epoch):
    def items_of(loader, epochs):
        return [list(loader) for _ in range(epochs)]

    expected = items_of(DataLoader2(stream()), 4)
    for at in range(11):
        loader = DataLoader2(stream())
        items_of(loader, epoch)
        head = list(islice(loader, at))
        other = DataLoader2(stream())
        other.load_state_dict(copied(loader.state_dict()))
        assert head + list(other) == expected[epoch]
        assert items_of(other, 2) == expected[epoch + 1 : epoch + 3]


def test_after_the_end_of_an_epoch_the_state_is_the_start_of_the_next():
    loader = DataLoader2(stream())
    first, state, second = list(loader), loader.state_dict(), list(loader)
    assert state["epoch"] == 1
    other = DataLoader2(stream())
    other.load_state_dict(state)
    assert list(other) == second != first


def test_a_state_can_be_taken_before_reading_and_after_shutdown():
    loader = DataLoader2(stream())
    start = loader.state_dict()
    items = iter(loader)
    next(items)
    loader.shutdown()
    after = loader.state_dict()
    assert start != after
    other = DataLoader2(stream())
    for state, count in ((after, 9), (start, 10)):
        other.load_state_dict(state)
        assert other.state_dict() == state
        assert len(list(other)) == count


def test_a_loaded_seed_holds_and_cannot_be_dropped_by_mistake():
    loader = DataLoader2(stream())
    loader.seed(7)
    next(iter(loader))
    other = DataLoader2(stream())
    other.load_state_dict(loader.state_dict())
    other.seed(7)
    with pytest.raises(StreamStateError, match="seed 7 is loaded.*before load_state_dict"):
        other.seed(8)
    assert len(list(other)) == 9
    assert list(other) == list(loader)


def test_states_are_refused_that_do_not_fit():
    loader = DataLoader2(stream())
    state = loader.state_dict()
    with pytest.raises(StreamStateError, match="not the state of a loader"):
        loader.load_state_dict(stream().and_return().state_dict())
    with pytest.raises(StreamStateError, match="version 7"):
        loader.load_state_dict({**state, "version": 7})
    with pytest.raises(StreamStateError, match="its stages are"):
        DataLoader2(stream().bucket(2)).load_state_dict(state)
    for damage in ({"epoch": "x"}, {"epoch": -1}, {"seed": -1}, {"seed": 2**64}):
        with pytest.raises(StreamStateError, match="damaged"):
            loader.load_state_dict({**state, **damage})
    assert len(list(loader)) == 10


def test_the_state_is_small(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(100)))
    loader = DataLoader2(read_jsonl(path).shuffle(0).sharding_filter().map(dict).bucket(4))
    next(iter(loader))
    assert len(json.dumps(loader.state_dict())) < 1000


def test_an_endless_stream_is_one_epoch_and_goes_on_anywhere():
    endless = read_sequence(list(range(5))).shuffle(0).repeat().sharding_filter()
    expected = list(islice(endless, 30))
    loader = DataLoader2(endless)
    assert list(islice(loader, 12)) == expected[:12]
    parts = []
    for rank in range(2):
        other = DataLoader2(endless, reading_service=DistributedReadingService(rank, 2))
        other.load_state_dict(loader.state_dict())
        parts.append(list(islice(other, 9)))
    assert parts == [expected[12::2], expected[13::2]]


# ---------------------------------------------------------------- iterators


def test_the_iterator_of_an_epoch_is_ended_by_a_newer_one():
    loader = DataLoader2(stream())
    old = iter(loader)
    next(old)
    new = iter(loader)
    with pytest.raises(DataPipelineError, match="invalidated"):
        next(old)
    assert len(list(new)) == 10
    assert list(new) == []


@pytest.mark.slow
def test_two_iterators_without_an_item_between_are_one_epoch(calls):
    loader = DataLoader2(stream(), reading_service=Recording("a"))
    old, new = iter(loader), iter(loader)
    assert len(list(new)) == 10
    assert calls.count("a.initialize_iteration(None)") == 1
    with pytest.raises(DataPipelineError, match="invalidated"):
        next(old)


@pytest.mark.slow
def test_a_limit_stops_and_resume_allows_as_many_again(calls):
    loader = DataLoader2(read_sequence(list(range(10))), reading_service=Recording("a"))
    items = iter(loader)
    items.limit(3)
    assert list(items) == [0, 1, 2]
    assert list(items) == []
    items.resume()
    assert list(items) == [3, 4, 5]
    assert "a.finalize_iteration" not in calls
    items.limit(None)
    items.resume()
    assert list(items) == [6, 7, 8, 9]
    assert calls.count("a.finalize_iteration") == 1
    with pytest.raises(StreamArgumentError, match="num_batches"):
        items.limit(-1)


def test_a_paused_iterator_yields_nothing_until_it_goes_on():
    items = iter(DataLoader2(read_sequence([1, 2])))
    items.pause()
    assert list(items) == []
    items.resume()
    assert list(items) == [1, 2]


# ---------------------------------------------------------------- services


def read(loader, epochs):
    for _ in range(epochs):
        for _ in loader:
            pass
    loader.shutdown()


@pytest.mark.slow
def test_a_service_is_called_once_for_each_beginning_and_end(calls):
    read(DataLoader2(stream(), reading_service=Recording("a")), 2)
    epoch = ["a.initialize_iteration(None)", "a.reset", "a.finalize_iteration"]
    assert calls == ["a.initialize", *epoch, *epoch, "a.finalize"]


@pytest.mark.slow
def test_services_in_sequence_begin_in_order_and_end_in_reverse(calls):
    services = SequentialReadingService(Recording("a"), Recording("b"))
    read(DataLoader2(stream(), reading_service=services), 1)
    assert calls == [
        "a.initialize", "b.initialize",
        "a.initialize_iteration(None)", "b.initialize_iteration(reset of a)", "b.reset",
        "b.finalize_iteration", "a.finalize_iteration",
        "b.finalize", "a.finalize",
    ]  # fmt: skip


@pytest.mark.slow
def test_without_a_reset_function_of_its_own_the_one_before_holds(calls):
    services = SequentialReadingService(Recording("a"), Recording("b", resets=False))
    read(DataLoader2(stream(), reading_service=services), 1)
    assert "a.reset" in calls


@pytest.mark.slow
def test_an_epoch_that_is_not_read_to_its_end_is_ended_before_the_next(calls):
    loader = DataLoader2(stream(), reading_service=Recording("a"))
    next(iter(loader))
    read(loader, 1)
    epoch = ["a.initialize_iteration(None)", "a.reset", "a.finalize_iteration"]
    assert calls == ["a.initialize", *epoch, *epoch, "a.finalize"]


@pytest.mark.slow
def test_a_service_that_never_began_is_not_called(calls):
    loader = DataLoader2(stream(), reading_service=Recording("a"))
    loader.shutdown()
    loader.shutdown()
    del loader
    gc.collect()
    assert calls == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["shutdown", "with", "del"])
def test_a_loader_ends_its_service_in_each_way(calls, how):
    loader = DataLoader2(stream(), reading_service=Recording("a"))
    next(iter(loader))
    if how == "with":
        with loader:
            pass
    elif how == "shutdown":
        loader.shutdown()
    del loader
    gc.collect()
    assert calls[-2:] == ["a.finalize_iteration", "a.finalize"]
    assert len(calls) == 5


@pytest.mark.slow
def test_an_error_of_the_stream_ends_the_service(calls):
    failing = read_sequence(list(range(9))).map(fails_at_5)
    services = SequentialReadingService(Recording("a"), Recording("b"))
    loader = DataLoader2(failing, reading_service=services)
    items = iter(loader)
    assert [next(items) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="five"):
        next(items)
    assert calls[-4:] == [
        "b.finalize_iteration",
        "a.finalize_iteration",
        "b.finalize",
        "a.finalize",
    ]
    for action in (lambda: iter(loader), loader.state_dict):
        with pytest.raises(DataPipelineError, match="an earlier ValueError has ended the loader"):
            action()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "ended"),
    [
        ("initialize", ["a.finalize"]),
        ("initialize_iteration", ["a.finalize_iteration", "b.finalize", "a.finalize"]),
        (
            "finalize_iteration",
            ["b.finalize_iteration", "a.finalize_iteration", "b.finalize", "a.finalize"],
        ),
    ],
)
def test_an_error_of_a_service_ends_what_has_begun(calls, method, ended):
    services = SequentialReadingService(Recording("a"), Recording("b", fails=(method,)))
    loader = DataLoader2(stream(), reading_service=services)
    with pytest.raises(OSError, match=f"{method} of b"):
        list(loader)
    assert [call for call in calls if "final" in call] == ended
    assert all(calls.count(call) == 1 for call in calls)


@pytest.mark.slow
def test_errors_while_ending_become_notes_of_the_first(calls):
    failing = read_sequence([5]).map(fails_at_5)
    services = SequentialReadingService(Recording("a"), Recording("b", fails=("finalize",)))
    with pytest.raises(ValueError, match="five") as caught:
        list(DataLoader2(failing, reading_service=services))
    assert "finalize of b" in "".join(caught.value.__notes__)
    assert calls[-1] == "a.finalize"


def test_a_service_that_cannot_be_pickled_is_refused_with_the_attribute():
    service = Recording("a")
    service.position = iter(stream())
    with pytest.raises(StreamArgumentError, match=r"'position' is a generator.*in initialize\(\)"):
        DataLoader2(stream(), reading_service=service)
    both = SequentialReadingService(Recording("b"), service)
    with pytest.raises(StreamArgumentError, match=r"holds a Recording: its attribute 'position'"):
        DataLoader2(stream(), reading_service=both)


@pytest.mark.slow
def test_loaders_do_not_share_a_service(calls):
    service = Remembering("a")
    first, second = (DataLoader2(stream(), reading_service=service) for _ in range(2))
    list(first), list(first), list(second)
    states = [one.state_dict()["service"] for one in (first, second)]
    assert states[0] != states[1]
    assert service.epochs == 0


def test_a_service_that_returns_no_stream_is_refused():
    class Forgetful(InProcessReadingService):
        def initialize(self, datapipe):
            datapipe.map(double)

    message = r"Forgetful.*initialize\(\) returned a NoneType"
    refused = pytest.raises(StreamArgumentError, match=message)
    with pytest.warns(UnusedStreamWarning), refused:
        list(DataLoader2(stream(), reading_service=Forgetful()))


# ---------------------------------------------------------------- services with a state


@pytest.mark.slow
def test_a_state_is_restored_instead_of_a_beginning(calls):
    loader = DataLoader2(stream(), reading_service=Remembering("a"))
    items = iter(loader)
    head = list(islice(items, 3))
    state = copied(loader.state_dict())
    expected = [*head, *items]
    calls.clear()
    other = DataLoader2(stream(), reading_service=Remembering("a"))
    other.load_state_dict(state)
    assert head + list(other) == expected
    assert calls[0] == "a.restore('epochs\\n1')"
    assert "a.initialize" not in calls


@pytest.mark.slow
def test_a_service_that_has_begun_begins_anew_from_a_loaded_state(calls):
    loader = DataLoader2(stream(), reading_service=Remembering("a"))
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    assert calls[-3:] == ["a.finalize_iteration", "a.finalize", "a.restore('epochs\\n1')"]
    assert len(list(loader)) == 9


@pytest.mark.slow
def test_services_in_sequence_restore_their_own_states(calls):
    def make():
        services = Remembering("a"), Recording("b"), Remembering("c")
        return DataLoader2(stream(), reading_service=SequentialReadingService(*services))

    loader = make()
    list(loader), next(iter(loader))
    state = copied(loader.state_dict())
    calls.clear()
    other = make()
    other.load_state_dict(state)
    assert calls == ["a.restore('epochs\\n2')", "b.initialize", "c.restore('epochs\\n2')"]
    fewer = DataLoader2(stream(), reading_service=SequentialReadingService(Remembering("a")))
    with pytest.raises(StreamStateError, match="states of 3 reading services, but here are 1"):
        fewer.load_state_dict(state)


@pytest.mark.slow
def test_a_service_without_states_refuses_that_of_another(calls):
    loader = DataLoader2(stream(), reading_service=Remembering("a"))
    state = loader.state_dict()
    other = DataLoader2(stream(), reading_service=Recording("a"))
    with pytest.raises(StreamArgumentError, match="no CheckpointableReadingServiceInterface"):
        other.load_state_dict(state)
    assert isinstance(StreamArgumentError("", ""), TypeError)


@pytest.mark.slow
def test_own_services_can_stand_beside_those_for_processes(calls):
    services = SequentialReadingService(Recording("a"), MultiProcessingReadingService(0))
    assert list(DataLoader2(stream(), reading_service=services)) == list(stream())


# ---------------------------------------------------------------- reset functions


def test_a_reset_function_can_change_the_stream_of_an_epoch():
    class Scaling(InProcessReadingService):
        def initialize_iteration(self, seed_generator, iter_reset_fn=None):
            factor = 1 + seed_generator.generate_shared_seed() % 1000
            return lambda given: given.map(lambda number: number * factor)

    loader = DataLoader2(read_sequence([0, 1]), reading_service=Scaling())
    epochs = [list(loader) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    again = DataLoader2(read_sequence([0, 1]), reading_service=Scaling())
    assert [list(again) for _ in range(3)] == epochs


def test_a_reset_function_that_returns_no_stream_is_refused_with_the_service():
    class Forgetting(InProcessReadingService):
        def initialize_iteration(self, seed_generator, iter_reset_fn=None):
            return lambda given: None

    loader = DataLoader2(stream(), reading_service=Forgetting())
    with pytest.raises(StreamArgumentError, match="Forgetting: iter_reset_fn returned a NoneType"):
        iter(loader)


def test_a_service_may_take_the_seed_generator_alone():
    class Scaling(InProcessReadingService):
        def initialize_iteration(self, seed_generator, iter_reset_fn=None):
            return lambda given: given.map(lambda number: number * 3)

    class Alone(InProcessReadingService):
        def initialize_iteration(self, seed_generator):
            seed_generator.seed(123)

    shuffled = read_sequence(list(range(20))).shuffle(0)
    alone = DataLoader2(shuffled, reading_service=Alone())
    joined = DataLoader2(shuffled, reading_service=SequentialReadingService(Scaling(), Alone()))
    first = list(alone)
    assert list(alone) == first != sorted(first)
    assert list(joined) == list(joined) == [3 * number for number in first]


def test_an_error_of_a_service_that_begins_an_epoch_is_its_own():
    class Failing(InProcessReadingService):
        def initialize_iteration(self, seed_generator):
            raise TypeError("of the service")

    with pytest.raises(TypeError, match="^of the service$"):
        iter(DataLoader2(stream(), reading_service=Failing()))


@pytest.mark.slow
def test_a_loader_goes_on_at_any_item_of_a_stream_that_a_reset_function_makes(calls):
    class Shifting(Recording):
        def initialize_iteration(self, seed_generator, iter_reset_fn=None):
            super().initialize_iteration(seed_generator)
            shift = seed_generator.generate_shared_seed() % 1000
            return lambda given: given.map(lambda number: number + shift)

    whole = DataLoader2(stream(), reading_service=Shifting("a"))
    epochs, states = [], [copied(whole.state_dict())]
    for _ in range(2):
        for item in whole:
            epochs.append(item)
            states.append(copied(whole.state_dict()))
    for at, state in enumerate(states):
        other = DataLoader2(stream(), reading_service=Shifting("b"))
        other.load_state_dict(state)
        assert copied(other.state_dict()) == state
        rest = [*other, *(other if at <= 10 else ())]
        assert epochs[:at] + rest == epochs
    begun = sum(one.startswith("b.initialize_iteration") for one in calls)
    del other
    assert begun == calls.count("b.finalize_iteration")
    with pytest.raises(StreamStateError, match="its stages are"):
        DataLoader2(stream().bucket(2), reading_service=Shifting("c")).load_state_dict(states[3])


def test_a_service_can_edit_the_graph_and_leaves_the_users_stream():
    class Halving(InProcessReadingService):
        def initialize(self, datapipe):
            heavy = graphs.find(datapipe, "map")[0]
            return graphs.replace(datapipe, heavy, lambda upstream: upstream.map(str))

    given = read_sequence([1, 2]).map(double)
    assert list(DataLoader2(given, reading_service=Halving())) == ["1", "2"]
    assert list(given) == [2, 4]


def test_a_loader_is_made_at_a_position():
    loader = DataLoader2(stream())
    items = iter(loader)
    list(islice(items, 4))
    state = copied(loader.state_dict())
    with DataLoader2.from_state(state, stream(), MultiProcessingReadingService(1)) as other:
        assert other.state_dict() == state
        assert list(other) == list(items)
    with pytest.raises(StreamStateError, match="its stages are"):
        DataLoader2.from_state(state, stream().bucket(2))
    with pytest.raises(StreamArgumentError, match="datapipe is a InProcessReadingService"):
        DataLoader2.from_state(state, InProcessReadingService())


def test_an_epoch_or_its_rest_is_written_to_a_file(tmp_path):
    records = read_sequence([{"n": n} for n in range(6)]).shuffle(0)
    path = tmp_path / "written.jsonl"
    loader = DataLoader2(records)
    first = next(iter(loader))
    rest = DataLoader2.from_state(loader.state_dict(), records).write(path)
    assert [first, *rest.read()] == list(records)
    expected = DataLoader2(records)
    assert [list(expected), loader.write(path).read()] == [list(records), list(expected)]
    with pytest.raises(InputError, match="record 0 is a int"):
        DataLoader2(stream()).write(path)
    assert path.read_bytes().count(b"\n") == 6


# ---------------------------------------------------------------- failed items


THIRDS = [0, 3, 6, 9]


def failing(**options):
    return read_sequence(list(range(12))).map(fails_on_thirds).and_return(**options)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_has_the_failed_items_of_all_epochs_and_workers(workers):
    service = MultiProcessingReadingService(workers)
    with DataLoader2(failing(on_error="quarantine"), reading_service=service) as loader:
        assert loader.quarantined == []
        list(islice(loader, 2))
        list(loader)
        state = loader.state_dict()
        assert [one["item"] for one in loader.quarantined] == [0, *THIRDS]
        list(loader)
        assert [one["item"] for one in loader.quarantined] == [0, *THIRDS * 2]
        loader.load_state_dict(state)
        assert [one["item"] for one in loader.quarantined] == [0, *THIRDS]
        list(loader)
        loader.seed(7)
        list(loader)
        assert [one["item"] for one in loader.quarantined] == [0, *THIRDS * 3]
        assert loader.errors == 13
    assert len(loader.quarantined) == 13


def test_the_failed_items_in_memory_are_bounded():
    stream = read_sequence([0] * 600).map(fails_on_thirds)
    stream = stream.and_return(on_error="quarantine", failure_tolerance=None)
    with DataLoader2(stream) as loader:
        for seed in range(3):
            loader.seed(seed)
            list(loader)
        assert len(loader.quarantined) == 1000
        assert loader.errors == 1800


def test_skipped_items_are_counted_and_not_kept():
    with DataLoader2(failing(on_error="skip")) as loader:
        list(loader)
        assert (loader.errors, loader.quarantined) == (4, [])


def test_ranks_with_one_quarantine_file_keep_the_entries_of_one_another(tmp_path):
    path = tmp_path / "bad.jsonl"

    def make(rank, ranks):
        stream = read_sequence(list(range(24))).sharding_filter().map(fails_on_thirds)
        stream = stream.and_return(on_error="quarantine", quarantine=path)
        return DataLoader2(stream, reading_service=DistributedReadingService(rank, ranks))

    states = []
    for rank in range(2):
        with make(rank, 2) as loader:
            reader = iter(loader)
            list(islice(reader, 4))
            states.append(loader.state_dict())
            list(reader)
    for rank in range(2):
        with make(rank, 2) as loader:
            loader.load_state_dict(states[rank])
            list(loader)
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(one["item"] for one in kept) == list(range(0, 24, 3))


# ---------------------------------------------------------------- names of TorchData


def test_a_service_of_a_script_uses_the_globals_of_the_script(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(
        "import threading\n"
        "from dagster_dataops import DataLoader2, ReadingServiceInterface, read_sequence\n"
        "from dagster_dataops import SequentialReadingService\n"
        "LOCK, CALLS, COUNT = threading.Lock(), [], 0\n"
        "class Service(ReadingServiceInterface):\n"
        "    def initialize(self, datapipe):\n"
        "        global COUNT\n"
        "        with LOCK: CALLS.append('initialize'); COUNT += 1\n"
        "        return datapipe\n"
        "services = [Service(), SequentialReadingService(Service(), Service())]\n"
        "for service in services:\n"
        "    print(list(DataLoader2(read_sequence([1]), reading_service=service)), CALLS, COUNT)\n"
    )
    runpy.run_path(str(script), run_name="__main__")
    found = capsys.readouterr().out
    assert found == "[1] ['initialize'] 1\n[1] ['initialize', 'initialize', 'initialize'] 3\n"


def test_a_service_holds_functions_modules_and_classes_by_reference():
    class Local(InProcessReadingService):
        def __init__(self):
            self.module, self.function, self.kind = json, lambda item: item + 1, Local
            self.values = [1]

        def initialize(self, datapipe):
            self.values.append(2)
            return datapipe.map(self.function)

    service = Local()
    with DataLoader2(read_sequence([1]), reading_service=service) as loader:
        assert list(loader) == [2]
        used = loader.reading_service
        assert used is not service
        assert (used.module, used.function, used.kind) == (json, service.function, Local)
        assert (used.values, service.values) == ([1, 2], [1])


def test_a_service_that_sets_a_seed_makes_each_epoch_the_first_of_it():
    seeds = []

    class Fixed(InProcessReadingService):
        def initialize_iteration(self, seed_generator, iter_reset_fn=None):
            seed_generator.seed(123)
            seeds.append((seed_generator.generate_shared_seed(), seed_generator.generate_seed()))

    make = lambda: DataLoader2(stream(), reading_service=Fixed())  # noqa: E731
    loader = make()
    first = list(loader)
    assert first == list(loader) == list(loader) == list(stream().and_return(seed=123))
    assert len(set(seeds)) == 1
    reader = iter(loader)
    head = list(islice(reader, 3))
    again = make()
    again.load_state_dict(copied(loader.state_dict()))
    assert [*head, *again] == first == list(again)


def test_a_service_that_sets_another_seed_for_each_epoch_sets_its_order():
    class Seeding(InProcessReadingService):
        epoch = 0

        def initialize_iteration(self, seed_generator, iter_reset_fn=None):
            seed_generator.seed(self.epoch)
            self.epoch += 1

    loader = DataLoader2(stream(), reading_service=Seeding())
    assert [list(loader) for _ in range(3)] == [
        list(stream().and_return(seed=seed)) for seed in range(3)
    ]


def test_an_iterator_has_the_attributes_of_the_stream():
    loader = DataLoader2(failing(on_error="quarantine", seed=5))
    reader = iter(loader)
    next(reader)
    assert reader.seed == 5
    assert [one["item"] for one in reader.quarantined] == [0]
    assert not reader.is_infinite()
    assert not hasattr(reader, "no_such_attribute")
    for name in ("state_dict", "load_state_dict", "reset", "close"):
        with pytest.raises(AttributeError, match="its position is that of the loader"):
            getattr(reader, name)


def test_a_loader_can_be_shut_down_while_it_reads():
    loaders = []

    def ends(item):
        if item == 3:
            loaders[0].shutdown()
        return item

    ahead = read_sequence([1, 2, 3, 4]).map(abs).prefetch(2)
    loaders.append(DataLoader2(ahead.map(ends)))
    reader = iter(loaders[0])
    assert [next(reader) for _ in range(3)] == [1, 2, 3]
    assert not [one for one in threading.enumerate() if one.name == "stream-prefetch"]
    with pytest.raises(DataPipelineError, match="invalidated"):
        next(reader)
