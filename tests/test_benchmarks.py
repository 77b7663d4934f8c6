"""Tests of the tools that measure speed, on tiny sizes; speed itself is not tested."""

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks import comparing, corpus, latencies, plain_rules, regression, rules, run
from benchmarks.bench import Bench
from benchmarks.figures import Figure, save, table
from benchmarks.measuring import Contender, ContenderError, ideal, measure, ours
from benchmarks.processes import cpu_seconds, proportional_memory, tree
from benchmarks.workloads import (
    asking,
    calling,
    chained,
    checkpointing,
    cleaning,
    deduplicating,
    facing,
    killing,
    memory,
    operating,
    resembling,
    resuming,
    rivals,
    scaling,
    sharing,
    starting,
    storing,
    streaming,
    trivial,
)
from tests.faults.cases import cases
from tests.object_stores import s3_server

pytestmark = pytest.mark.slow

OUR_PACE = rivals.Pace(records_per_second=1000.0, cpu_microseconds=5.0)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, rounds=1)


def test_list_scheduling_starts_each_call_as_soon_as_a_worker_is_free():
    assert latencies.list_schedule([3, 1, 1, 1, 2], workers=2) == 5
    assert latencies.list_schedule([1, 1, 1], workers=1) == 3
    assert latencies.list_schedule([2, 7, 1], workers=5) == 7
    assert latencies.list_schedule([], workers=3) == 0


def test_latencies_have_the_quantiles_they_promise():
    found = sorted(map(latencies.latency, range(20_000)))
    assert found[10_000] == pytest.approx(0.05, rel=0.05)
    assert found[19_800] == pytest.approx(1.0, rel=0.15)
    assert latencies.latency(7) == latencies.latency(7)


def test_inputs_have_the_sizes_they_promise(tmp_path: Path):
    texts = corpus.write(tmp_path / "texts", corpus.texts(1_000))
    assert texts.stat().st_size / 1_000 == pytest.approx(575, rel=0.05)
    keys = corpus.write(tmp_path / "keys", corpus.keys(1_000))
    assert keys.stat().st_size / 1_000 == pytest.approx(100, rel=0.2)
    again = corpus.write(tmp_path / "again", corpus.texts(1_000))
    assert again.read_bytes() == texts.read_bytes()


@pytest.mark.parametrize("name", ["upper", "clean"])
def test_the_ideal_writes_the_same_on_one_process_and_on_two(bench: Bench, name: str):
    source = bench.source("documents", corpus.documents(0.3))
    one, two = ideal(source, name, workers=1), ideal(source, name, workers=2)
    runs = bench.in_turn({"one": one, "two": two})
    assert all(run.seconds > 0 and run.cpu_seconds > 0 for found in runs.values() for run in found)


def test_a_missing_loader_is_reported_and_a_far_position_is_measured(bench: Bench):
    figure = sharing.against_peer(bench, "grain", "slow", 200)
    assert math.isnan(figure.value)
    assert figure.note == "not installed"
    assert sharing.restored(bench).value > 0


@pytest.mark.parametrize("task", ["slow", "busy", "empty"])
def test_two_workers_and_one_process_read_the_same(bench: Bench, task: str):
    figure = sharing.against_one(bench, task, 200, least=1.9)
    assert figure.value > 0
    assert set(figure.runs) == {"one", "two"}


def test_a_missing_package_of_streams_is_reported(bench: Bench):
    figure = streaming.against_peer(bench, "nobody_at_all", "mix", 200)
    assert math.isnan(figure.value)
    assert figure.note == "not installed"


def test_a_wrong_output_is_detected(bench: Bench):
    source = bench.source("texts", corpus.texts(50))
    right, wrong = ideal(source, "upper", workers=1), ours(source, ("clean", {}))
    with pytest.raises(comparing.WrongOutputError, match="'ours' differs"):
        bench.in_turn({"ideal": right, "ours": wrong})


def test_records_in_another_spelling_or_order_are_distinguished_from_wrong_ones(tmp_path: Path):
    def written(name: str, *lines: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    right = written("right", b'{"a":1,"b":2}', b'{"a":3}')
    assert comparing.verdict(right, [written("same", *right.read_bytes().splitlines())]) == (
        "same bytes"
    )
    parts = [written("first", b'{"b": 2, "a": 1}'), written("second", b'{"a": 3}')]
    assert comparing.verdict(right, parts) == "same records"
    assert comparing.verdict(right, parts[::-1]) == "same records, not in order"
    wrong = written("wrong", b'{"a":1,"b":2}', b'{"a":4}')
    assert comparing.verdict(right, [wrong]) == "1 of 2 records differ or are missing"


def test_a_failed_contender_reports_its_error(bench: Bench):
    missing = ideal(bench.folder / "nothing", "upper", workers=1)
    with pytest.raises(ContenderError, match="FileNotFoundError"):
        measure(missing, bench.folder / "out")


def test_a_contender_that_takes_too_long_is_ended(bench: Bench):
    source = bench.source("calls", corpus.even_calls(1_000, 1.0))
    slow = replace(ours(source, ("call", {"_concurrency_mode": "single"})), limit=0.5)
    with pytest.raises(ContenderError, match="not done after"):
        measure(slow, bench.folder / "out")


def test_memory_is_that_of_a_whole_tree():
    assert proportional_memory(tree(1 << 30)) == 0
    assert proportional_memory(tree(run.os.getpid())) > 1e6


def _on_a_store(bench: Bench, source: Path) -> list[Figure]:
    with s3_server() as address:
        return list(storing.against_disk(bench, address, "trivial", source, "upper", 0.0))


def test_cpu_seconds_are_those_of_living_processes():
    before, took = cpu_seconds([run.os.getpid()]), time.process_time()
    while time.process_time() < took + 0.1:
        sum(range(1000))
    assert cpu_seconds([run.os.getpid()]) - before > 0.05
    assert cpu_seconds([1 << 30]) == 0


def _as_in_regression(bench: Bench) -> list[Figure]:
    """Measure what ``benchmarks/regression.py`` measures, too, at larger sizes."""
    calls = bench.source("calls", corpus.even_calls(300, 0.01))
    threads = {"_concurrency_mode": "thread", "_max_workers": 4}
    return [
        *trivial.against_ideal(bench, 200, 1, 0.0),
        cleaning.against_ideal(bench, 1, 0.0),
        *chained.against_ideal(bench, 200, 0.0),
        *calling.against_schedule(bench, 20, 8, 1e9, rounds=1, scale=0.01, cpu_goal=1e9),
        memory.growth(bench, "single", 100, 200),
        *resuming.killed_and_resumed(bench, calls, 300, ("marked_call", threads), "reply", 1e9),
        starting.beyond_imports("single", 1),
    ]


def _by_themselves(bench: Bench) -> list[Figure]:
    calls = bench.source("calls", corpus.even_calls(300, 0.01))
    texts = bench.source("texts", corpus.texts(200))
    threads = {"_concurrency_mode": "thread", "_max_workers": 4}
    return [
        trivial.with_warm_workers(bench, 200),
        *asking.against_script(bench, 20, most=None),
        deduplicating.against_set(bench, "Exact", texts, 200, comparing.same_bytes),
        *deduplicating.of_pairs(bench, 30),
        streaming.against_loop(bench, "lines", 200, comparing.same_bytes),
        streaming.against_loop(bench, "mix", 200, streaming.anything),
        streaming.against_loop(bench, "all", 200, comparing.same_bytes),
        streaming.growth(bench, "all", 100, 200, most=30),
        *streaming.selecting(100, 2),
        operating.against_plain(bench, texts, "word_count")[0],
        *_on_a_store(bench, texts),
        *scaling.against_one_machine(bench, "trivial", texts, "upper", 0.0),
        scaling.growth_of_head(bench, texts, texts),
        checkpointing.cost(bench, "W1", calls, "call", threads),
        *facing.definitions(bench, "steps", 5),
        *facing.chain(bench, "single_step", "single", nodes=2),
    ]


# ``.ci/run`` runs the regression script itself.
@pytest.mark.parametrize(
    "measured", cases([_by_themselves], campaign=[_by_themselves, _as_in_regression])
)
def test_every_workload_measures_something_at_a_tiny_size(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, measured: Callable[[Bench], list[Figure]]
):
    monkeypatch.setattr(Bench, "size", lambda *_: 1)  # one process for each measurement
    figures = measured(bench)
    assert figures
    assert not [figure for figure in figures if math.isnan(figure.value)]


def test_a_peer_is_measured_and_its_records_are_checked(bench: Bench):
    pretended = bench.folder / "polars" / "bin" / "python"
    pretended.parent.mkdir(parents=True)
    pretended.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    pretended.chmod(0o755)
    rival = rivals.Rival("polars", "", 300, 1)
    figure = rivals.against(replace(bench, peers=bench.folder), rival, "upper", OUR_PACE)
    assert figure.value > 0
    assert "same bytes" in figure.note


def test_a_peer_without_an_environment_is_not_an_error(bench: Bench):
    rival = rivals.Rival("nobody", "", 10, 1)
    assert rivals.against(bench, rival, "upper", OUR_PACE).note == "not installed"
    elsewhere = replace(bench, peers=bench.folder)
    assert rivals.against(elsewhere, rival, "upper", OUR_PACE).note == "not installed"


def test_a_table_shows_figures_goals_and_whether_they_are_met():
    figures = [
        Figure("W1", "share", 0.9, "of ideal", least=0.85, note="quiet"),
        Figure("W4", "time", 1.5, "x schedule", most=1.01),
        Figure("W4", "rate", 123_456.0, "records/s"),
    ]
    lines = table(figures).splitlines()
    assert lines[1] == "W1 | share |     0.9 | of ideal   | >= 0.85 | met    | quiet"
    assert lines[2] == "W4 | time  |     1.5 | x schedule | <= 1.01 | MISSED"
    assert lines[3] == "W4 | rate  | 123,456 | records/s"


def test_saved_figures_are_json_even_without_measurements(tmp_path: Path):
    path = save([Figure("peers", "failed", math.nan, "", most=0)], tmp_path / "results")
    (figure,) = orjson.loads(path.read_bytes())["figures"]
    assert (figure["value"], figure["met"]) == (None, False)


def _one(bench: Bench):
    yield Figure("W0", "always", 1.0, "x", least=0.5)


def _broken(bench: Bench):
    yield from _one(bench)
    measure(Contender("benchmarks.nothing", {}), bench.folder / "out")


def test_one_command_prints_the_table_and_writes_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(run, "WORKLOADS", {"W0": _one})
    assert run.main(["--results", str(tmp_path), "--rounds", "1"]) == 0
    assert "W0 | always |     1 | x    | >= 0.5 | met" in capsys.readouterr().out
    (path,) = tmp_path.glob("*.json")
    assert [found["name"] for found in json.loads(path.read_bytes())["figures"]] == ["always"]


def test_a_workload_that_fails_ends_only_itself_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(run, "WORKLOADS", {"broken": _broken, "W0": _one})
    assert run.main(["--results", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.out.count("| always |") == 2
    assert "broken failed: benchmarks.nothing ended with 1" in printed.err


def test_a_missed_bound_is_measured_once_more_before_it_fails(capsys: pytest.CaptureFixture[str]):
    values = iter([0.1, 0.9])

    def flaky(bench: Bench):
        yield Figure("W1", "flaky", next(values), "of ideal", least=0.5)

    def slow(bench: Bench):
        yield Figure("W1", "slow", 0.1, "of ideal", least=0.5)

    assert regression.main({"flaky": flaky}) == 0
    assert regression.main({"slow": slow}) == 1
    assert "slow again" in capsys.readouterr().out


def test_a_wrong_result_is_never_measured_again(capsys: pytest.CaptureFixture[str]):
    tries = []

    def wrong(bench: Bench):
        tries.append(1)
        raise comparing.WrongOutputError("bytes differ")
        yield

    assert regression.main({"wrong": wrong}) == 1
    assert len(tries) == 1
    assert "bytes differ" in capsys.readouterr().err


def test_a_tool_is_judged_by_the_pairs_of_which_it_removes_one(bench: Bench):
    source = bench.source("pairs", corpus.similar_pairs(40, 1))
    node = ("dedup.NearDuplicate", {"verify": True})
    found = resembling.found_by(bench, source, ours(source, node))
    assert found.f1 > 0.9
    assert resembling.promised(0.8) == pytest.approx(0.92, abs=0.01)


def test_operators_agree_with_plain_code():
    records = list(corpus.prose(80))  # parses the standard library: takes seconds
    share = {
        name: _agreement(name, records)
        for name in sorted(set(rules.RULES) - {"token_count", "language"})
    }

    assert len(share) > 10
    assert {name: found for name, found in share.items() if found <= 0.98} == {}


def _agreement(name: str, records: list[dict[str, Any]]) -> float:
    if rules.RULES[name].compared:
        return rules.agreement(name, rules.constructed(name), records)
    assert getattr(plain_rules, name)(dict(records[0])), name
    return 1.0


def test_a_kill_is_judged_by_its_calls_and_results():
    before, after = [0, 1, 2, 3], [2, 3, 4, 5]
    verdict = killing.Verdict.of(before, after, [0, 1, 3, 2, 2], rows=6)
    assert str(verdict) == "2 of 4 repeated, 2 lost, 1 doubled, not in input order"
    assert killing.Verdict.of([0], [1], [0, 1], rows=2).ordered


@pytest.mark.parametrize("victim", killing.OURS, ids=lambda victim: victim.name)
def test_a_killed_run_of_ours_loses_and_doubles_nothing(bench: Bench, victim: killing.Victim):
    rows = 600 if victim.asks else 2_000  # a call of a model takes longer than a journal waits
    source = bench.source("killed", killing.numbered(rows))
    figure = killing.killed(bench, victim, source, rows)
    assert "0 lost, 0 doubled, in input order" in figure.note
    assert figure.value < 50


def test_a_missing_victim_is_reported(bench: Bench):
    figure = killing.killed(bench, killing.PEERS[0], bench.folder / "nothing", 10)
    assert math.isnan(figure.value)
    assert figure.note == "not installed"
