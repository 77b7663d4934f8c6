"""Streams with workers give the results that were observed or decided, case by case.

The cases are no part of the package.
"""

import functools
import json
from itertools import islice
from pathlib import Path

import pytest

from dagster_dataops import read_sequence
from dagster_dataops.errors import DataOpsError, StreamDefinitionError


@functools.cache
def golden():
    """Return the cases and their functions."""
    places = [parent / "shared" / "research" for parent in Path(__file__).resolve().parents]
    paths = [place / "energon_torchdata_golden_public.json" for place in places]
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    return found[0] if found else {"cases": [], "functions": {}}


@functools.cache
def functions():
    names = {"json": json}
    for name in ("dbl", "neg", "odd", "twice", "fails_at_5"):
        exec(golden()["functions"][name], names)  # noqa: S102 - the cases define them so
    return names


def stream(given, workers):
    made = read_sequence(list(range(given["source"])))
    for name, *arguments in given["ops"]:
        wanted = "sharding_round_robin_dispatch" if name == "dispatch" else name
        found = [functions()[one] if isinstance(one, str) else one for one in arguments]
        made = getattr(made, wanted)(*found)
    return made.workers(workers)


def run_loader(given):
    found = [
        list(stream(given["stream"], workers).and_return(seed=given.get("seed", 0)))
        for workers in given["workers"]
    ]
    assert all(one == found[0] for one in found)
    if given.get("show") == "complete":
        return [sorted(found[0]) == given["items"]]
    return found[0]


def run_fails(given):
    found = {}
    for workers in given["workers"]:
        items, failed = [], False
        try:
            for item in stream(given["stream"], workers):
                items.append(item)  # noqa: PERF402 - kept when the stream fails
        except (DataOpsError, ValueError):
            failed = True
        found[str(workers)] = [items, failed]
    return found


def run_resumed(given):
    wrong, expected = [], list(stream(given["stream"], 0))
    for first in given["workers"]:
        for at in given["at"]:
            begun = stream(given["stream"], first).and_return()
            head, state = list(islice(begun, at)), json.dumps(begun.state_dict())
            for other in given["workers"]:
                resumed = stream(given["stream"], other).and_return()
                resumed.load_state_dict(json.loads(state))
                if head + list(resumed) != expected:
                    wrong.append([first, at, other])
    return wrong


def run_shards(given):
    found = []
    numbers = read_sequence(list(range(given["count"])))
    for rank in range(given["world"]):
        for worker in range(given["workers"]):
            own = numbers.shard(rank, given["world"]).shard(worker, given["workers"])
            found.append([rank, worker, list(own)])
    return found


RUN = {
    "loader": run_loader,
    "fails": run_fails,
    "resumed": run_resumed,
    "shards": run_shards,
}
# A stream is resumed 96 times there; `test_merge_cursor` resumes the same one at every item.
CAMPAIGNS = {"resumed": [pytest.mark.slow]}
CASES = [one for one in golden()["cases"] if one["kind"] in RUN]


@pytest.mark.skipif(not CASES, reason="the observed cases are not here")
@pytest.mark.parametrize(
    "case",
    [pytest.param(one, id=one["id"], marks=CAMPAIGNS.get(one["kind"], [])) for one in CASES],
)
def test_the_stream_gives_the_observed_result(case):
    expected, run = case["expected"], RUN[case["kind"]]
    if isinstance(expected, dict) and "raises" in expected:
        with pytest.raises(StreamDefinitionError) as caught:
            run(case["given"])
        for word in expected["says"]:
            assert word in str(caught.value)
    else:
        assert run(case["given"]) == expected
