"""Loaders, services, ranks and graphs give the results that were observed or decided, case by case.

The cases are no part of the package.
"""

import functools
import json
from itertools import islice
from pathlib import Path

import pytest

from dagster_dataops import (
    DataLoader2,
    DataPipeline,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    errors,
    graphs,
    merged_states,
    read_sequence,
)
from tests.training.loading import recording

_ERRORS = {"stage": errors.StreamDefinitionError}


@functools.cache
def golden():
    places = [parent / "shared" / "research" for parent in Path(__file__).resolve().parents]
    paths = [place / "energon_torchdata_golden_public.json" for place in places]
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    return found[0] if found else {"cases": [], "functions": {}}


@functools.cache
def functions():
    names = {"read_sequence": read_sequence, "DataPipeline": DataPipeline, "json": json}
    for name in ("dbl", "neg", "odd", "twice", "fails_at_5"):
        exec(golden()["functions"][name], names)  # noqa: S102
    return names


def stream(given):
    made = read_sequence(list(range(given["source"])))
    for name, *arguments in given["ops"]:
        wanted = "sharding_round_robin_dispatch" if name == "dispatch" else name
        found = [functions()[one] if isinstance(one, str) else one for one in arguments]
        made = getattr(made, wanted)(*found)
    return made


def loader(given, workers=0, rank=0, world_size=1, seed=None):
    services = SequentialReadingService(
        DistributedReadingService(rank, world_size), MultiProcessingReadingService(workers)
    )
    made = DataLoader2(stream(given), reading_service=services)
    if seed is not None:
        made.seed(seed)
    return made


def copied(state):
    return json.loads(json.dumps(state))


def run_loader(given):
    found = []
    for workers in given["workers"]:
        with loader(given["stream"], workers, seed=given.get("seed")) as made:
            found.append(list(made))
    assert all(one == found[0] for one in found), found
    if given.get("show") == "complete":
        return [sorted(found[0]) == given["items"]]
    return found[0]


def run_resumed(given):
    wrong = []
    expected = list(stream(given["stream"]))
    for first in given["workers"]:
        for at in given["at"]:
            with loader(given["stream"], first) as made:
                head, state = list(islice(made, at)), copied(made.state_dict())
            for other in given["workers"]:
                with loader(given["stream"], other) as resumed:
                    resumed.load_state_dict(state)
                    if head + list(resumed) != expected:
                        wrong.append([first, at, other])
    return wrong


def run_ranks(given):
    world, at, workers = given["world"], given["at"], given["workers"]
    made = [loader(given["stream"], workers, rank, world) for rank in range(world)]
    heads = [list(islice(one, at)) for one in made]
    states = [copied(one.state_dict()) for one in made]
    for one in made:
        one.shutdown()
    everything = list(stream(given["stream"]))
    seen = [item for head in heads for item in head]
    found = [all(one == states[0] for one in states)]
    found.append(sorted(seen) == sorted(everything[: at * world]))
    for other in given["other"]:
        rests = []
        for rank in range(other):
            with loader(given["stream"], 0, rank, other) as resumed:
                resumed.load_state_dict(merged_states(states))
                rests.append(list(resumed))
        sizes = [len(rest) for rest in rests]
        complete = sorted(seen + [item for rest in rests for item in rest]) == sorted(everything)
        found.append(complete and max(sizes) - min(sizes) <= 1)
    return found


def run_global_batches(given):
    found = []
    for world in given["worlds"]:
        rows = [iter(loader(given["stream"], 0, rank, world)) for rank in range(world)]
        each = given["batch"] // world
        count = given["stream"]["source"] // given["batch"]
        found.append([sorted(n for row in rows for n in islice(row, each)) for _ in range(count)])
    return all(one == found[0] for one in found)


def run_shards(given):
    world, workers = given["world"], given["workers"]
    source = read_sequence(list(range(given["count"])))
    return [
        [rank, worker, list(source.shard(rank, world).shard(worker, workers))]
        for rank in range(world)
        for worker in range(workers)
    ]


def run_fails(given):
    found = {}
    for workers in given["workers"]:
        items = []
        with (
            loader(given["stream"], workers) as made,
            pytest.raises(ValueError, match="five") as caught,
        ):
            items.extend(made)
        found[str(workers)] = [items, "five" in str(caught.value)]
    return found


def run_graph(given):
    made = stream(given["stream"])
    action, *rest = given["action"]
    edited = made
    if action != "list":
        stage = graphs.find(made, rest[0])[rest[1]]
        more = [lambda upstream: upstream.map(functions()[rest[2]])] if rest[2:] else []
        edited = getattr(graphs, action)(made, stage, *more)
    names = [one.name for one in graphs.traverse(edited)]
    return names if action == "list" else [names, list(edited), list(made)]


def run_services(given):
    recording.CALLS.clear()
    services = [recording.Recording(name) for name in given["names"]]
    service = services[0] if len(services) == 1 else SequentialReadingService(*services)
    made = DataLoader2(read_sequence([1, 2]), reading_service=service)
    for _ in range(given["epochs"]):
        list(made)
    made.shutdown()
    return list(recording.CALLS)


_KINDS = {
    "loader": run_loader,
    "resumed": run_resumed,
    "ranks": run_ranks,
    "global_batches": run_global_batches,
    "shards": run_shards,
    "fails": run_fails,
    "graph": run_graph,
    "services": run_services,
}


def _marks(case):
    return [pytest.mark.slow] if case["kind"] == "resumed" else []


_CASES = [case for case in golden()["cases"] if case["kind"] in _KINDS]


@pytest.mark.skipif(not _CASES, reason="the folder with the cases is not there")
@pytest.mark.parametrize(
    "case", [pytest.param(one, id=one["id"], marks=_marks(one)) for one in _CASES]
)
def test_the_result_is_as_observed(case):
    run, expected = _KINDS[case["kind"]], case["expected"]
    if isinstance(expected, dict) and "raises" in expected:
        with pytest.raises(_ERRORS[expected["raises"]]) as caught:
            run(case["given"])
        assert all(word in str(caught.value) for word in expected["says"])
        return
    assert run(case["given"]) == expected
