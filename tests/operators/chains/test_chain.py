"""Tests of chains: the operator, and the calls of its parts."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops import Drop, chain, config, data
from dagster_dataops.errors import ChainDefinitionError, OperatorOptionError
from dagster_dataops.operators.chains.chain import Chain
from dagster_dataops.operators.chains.chain_calls import (
    PartCall,
    PartTimes,
    async_chain_function,
    chain_function,
    seconds_of,
)
from dagster_dataops.operators.outcomes.return_contract import FAILED_PART, Disposed
from tests.nodes import ExecutionSettings, exporting, reconfigured
from tests.operators.chain_parts import act  # noqa: F401 - registers the operators
from tests.sent_operators import receive, ship


def made() -> Any:
    return chain(data.chained.act(part=1), data.chained.counted(step=3), name="made")


def test_a_chain_is_sent_to_another_process_with_its_parts() -> None:
    factor = 3

    def times(record: dict) -> Any:  # type: ignore[type-arg]
        return {"n": record["n"] * factor}

    sent = chain(times, data.chained.Opened(log="x", label="y"), name="made", _max_workers=5)
    payload = ship(sent)
    back = receive(payload)
    assert isinstance(back, Chain)
    assert [part.name for part in back.parts] == ["times", "Opened"]
    assert back.__dataops__.settings.max_workers == 5
    assert back.__dataops__.spec.opens
    assert vars(back.parts[1].operator)["label"] == "y"


@pytest.mark.slow
def test_processes_that_are_not_forked_run_a_chain_of_a_script(run_python: Any) -> None:
    said = run_python(
        """
import threading
from dagster_dataops import chain, config, data, data_register

def double(record: dict):
    return [record, {**record, "copy": True}]

@data_register("data.own")
def shout(record, end="!"):
    return {**record, "text": record["text"] + end}

class Keep(data.own):
    def __init__(self, n, **given):
        super().__init__(**given)
        self.n = n
    def forward(self, record):
        return record if record["n"] % self.n else []

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # no fork beside it
    with config.temporary(data_process_path="results", data_process_progress=False):
        made = chain(double, shout(end="?"), Keep(2), _max_workers=2)
        found = made([{"n": n, "text": "x"} for n in range(4)])
    print(len(found), {row["text"] for row in found}, [row["n"] for row in found])
"""
    )
    assert said.strip() == "4 {'x?'} [1, 1, 3, 3]"


def test_options_of_parts_are_replaced_by_the_names_of_the_parts() -> None:
    changed = reconfigured(made(), {"counted": {"step": 7}}, ExecutionSettings(max_workers=2))
    assert changed.__dataops__.options == {"act": {"part": 1}, "counted": {"step": 7}}
    assert changed.__dataops__.options_digest != made().__dataops__.options_digest
    assert changed.__dataops__.resolved.max_workers == 2
    with pytest.raises(OperatorOptionError, match="'acts' is no part of the chain"):
        reconfigured(made(), {"acts": {}}, ExecutionSettings())
    with pytest.raises(OperatorOptionError, match="stepp"):
        reconfigured(made(), {"counted": {"stepp": 7}}, ExecutionSettings())


def test_a_chain_shows_its_parts() -> None:
    assert repr(made()) == "chain(data.chained.act(part=1), data.chained.counted(step=3))"
    spec = made().__dataops__.spec
    assert spec.reference == "chain(data.chained.act, data.chained.counted)"
    assert spec.description.splitlines() == [
        "A chain of 2 record operators:",
        "",
        "1. `act`: Do what the record says for this part.",
        "1. `counted`",
    ]
    assert exporting(made(), Path("x")).__dataops__.output == Path("x")


def test_the_error_survives_pickling() -> None:
    import pickle

    error = ChainDefinitionError("made", "part a is a reader")
    assert str(pickle.loads(pickle.dumps(error))) == "Chain 'made': part a is a reader"


def test_the_package_loads_no_dagster_for_a_chain() -> None:
    code = "import sys; from dagster_dataops import chain; print('dagster' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
    assert config is not None


def chained(*forwards: Any) -> Any:
    calls = [PartCall("abcdefgh"[n], forward, False) for n, forward in enumerate(forwards)]
    run = chain_function(calls, PartTimes(len(calls)))
    run({"n": -1})  # the first record is timed, and takes another way
    return run


def both_ways(*forwards: Any) -> list[Any]:
    """What the first record comes to, which is timed, and what a later one does."""
    calls = [PartCall("abcdefgh"[n], forward, False) for n, forward in enumerate(forwards)]
    run = chain_function(calls, PartTimes(len(calls)))
    return [run({"n": 1}) for _ in range(2)]


def fields(outcome: Disposed) -> Any:
    return orjson.loads(outcome.disposition)


def plus(record: dict[str, Any]) -> Any:
    record["n"] += 1


def test_a_usual_record_passes_all_parts_and_is_no_more_than_a_dict() -> None:
    run = chained(plus, lambda record: {"n": record["n"] * 10}, plus)
    assert run({"n": 1}) == {"n": 21}


def test_a_list_of_one_record_and_subclasses_of_dict_are_usual() -> None:
    class Odd(dict[str, Any]):
        pass

    for outcome in both_ways(lambda record: [record], plus, Odd):
        assert outcome == {"n": 2}


def test_dropped_records_name_the_part_and_the_reason() -> None:
    for outcome in both_ways(plus, lambda record: Drop("odd"), plus):
        assert outcome.records == []
        assert fields(outcome) == {"emitted": 0, "dropped": ["b: odd"], "entered": [1, 1]}
    for outcome in both_ways(plus, plus, lambda record: []):
        assert fields(outcome) == {"emitted": 0, "dropped": ["c"]}


def test_several_records_go_through_the_later_parts_one_by_one() -> None:
    def odd(record: dict[str, Any]) -> Any:
        return Drop("odd") if record["i"] % 2 else None

    def three(record: dict[str, Any]) -> Any:
        return [{**record, "i": i} for i in range(5)]

    for outcome in both_ways(plus, three, odd, plus):
        assert [record["i"] for record in outcome.records] == [0, 2, 4]
        assert fields(outcome) == {
            "emitted": 3,
            "dropped": {"c: odd": 2},
            "entered": [1, 1, 5, 3],
        }


def test_records_of_a_list_share_nothing_that_a_later_part_may_change() -> None:
    def twice(record: dict[str, Any]) -> Any:
        record["list"] = [{"x": 1}]
        return [record, record, {**record}]

    def append(record: dict[str, Any]) -> Any:
        record["list"][0]["x"] += 1
        record["list"].append(0)

    for outcome in both_ways(twice, append):
        assert outcome.records == [{"n": 1, "list": [{"x": 2}, 0]}] * 3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda record: 7,
        lambda record: [record, 7],
        lambda record: Drop(""),
        lambda record: Drop(7),  # type: ignore[arg-type]
        lambda record: 1 / 0,
        lambda record: next(iter(())),  # an exception that ends an iterator
    ],
)
def test_an_exception_names_the_part(wrong: Any) -> None:
    run = chain_function([PartCall("a", plus, False), PartCall("b", wrong, False)], PartTimes(2))
    for _ in range(2):
        with pytest.raises((TypeError, ZeroDivisionError, StopIteration)) as caught:
            run({"n": 1})
        name, disposition = getattr(caught.value, FAILED_PART)
        assert name == "b"
        assert orjson.loads(disposition) == {"failed": 1}


@pytest.mark.parametrize("failing", range(8))
def test_each_part_is_named_when_it_fails_or_drops(failing: int) -> None:
    def odd(record: dict[str, Any]) -> Any:
        return Drop("odd") if record["odd"] else 1 / 0

    forwards = [odd if part == failing else plus for part in range(8)]
    calls = [PartCall("abcdefgh"[part], one, False) for part, one in enumerate(forwards)]
    run, name = chain_function(calls, PartTimes(8)), "abcdefgh"[failing]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            run({"n": 1, "odd": False})
        assert getattr(caught.value, FAILED_PART)[0] == name
        assert fields(run({"n": 1, "odd": True}))["dropped"] == [f"{name}: odd"]


def test_a_failure_after_a_split_tells_how_many_records_had_come_so_far() -> None:
    def fail(record: dict[str, Any]) -> Any:
        if record["i"] == 2:
            raise LookupError
        return Drop("one") if record["i"] else None

    def split(record: dict[str, Any]) -> Any:
        return [{"i": i} for i in range(4)]

    run = chain_function(
        [PartCall("a", split, False), PartCall("b", fail, False), PartCall("c", plus, False)],
        PartTimes(3),
    )
    for _ in range(2):
        with pytest.raises(LookupError) as caught:
            run({})
        assert orjson.loads(getattr(caught.value, FAILED_PART)[1]) == {
            "entered": [1, 4],
            "dropped": ["b: one"],
            "failed": 1,
        }


def test_seconds_are_those_of_the_parts() -> None:
    times = PartTimes(2)

    def slow(record: dict[str, Any]) -> None:
        time.sleep(0.002)

    run = chain_function([PartCall("a", plus, False), PartCall("b", slow, False)], times)
    began = time.perf_counter()
    for _ in range(20):
        run({"n": 1})
    spent = time.perf_counter() - began
    counts: dict[str, Any] = dict(times.take())
    assert seconds_of(counts, 0) < 0.1 * seconds_of(counts, 1)
    assert 0.04 <= seconds_of(counts, 1) <= spent


def test_quick_parts_are_timed_for_few_records_that_stand_for_all() -> None:
    times = PartTimes(1)
    timed = []
    add = times.add
    times.add = lambda part, seconds: (timed.append(seconds), add(part, seconds))[1]  # type: ignore[method-assign]
    run = chain_function([PartCall("a", plus, False)], times)
    for _ in range(20_000):
        run({"n": 1})
    assert len(timed) < 5_000


def test_few_spans_have_seconds_in_their_notes() -> None:
    times = PartTimes(1)
    taken = 0
    for _ in range(10_000):
        times.add(0, 0.001)
        taken += bool(times.take())
    assert taken < 300


def test_coroutines_and_functions_are_parts_of_one_chain() -> None:
    async def ten(record: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return [{"n": record["n"] * 10}, {"n": 0}]

    async def fail(record: dict[str, Any]) -> Any:
        raise KeyError("x")

    calls = [PartCall("a", plus, False), PartCall("b", ten, True), PartCall("c", plus, False)]
    outcome = asyncio.run(async_chain_function(calls, PartTimes(3))({"n": 1}))
    assert outcome.records == [{"n": 21}, {"n": 1}]
    assert fields(outcome) == {"emitted": 2, "entered": [1, 1, 2]}
    failed: list[Any] = []
    with pytest.raises(KeyError):
        asyncio.run(
            async_chain_function([PartCall("a", fail, True)], PartTimes(1))({"n": 1}, failed)
        )
    assert failed == [("a", b'{"failed":0}')]
