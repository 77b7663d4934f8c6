"""Tests of deaths over agents: the result and the error file are those of a run at home."""

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from dagster_dataops.errors import RecordError, RunStoppedError
from tests.execution.cluster.fixtures import (
    Cuttable,
    Meanwhile,
    Watched,
    both,
    family,
    input_of,
    kill_one,
    silent_after,
    works,
)
from tests.execution.cluster.kill_campaign import campaign
from tests.execution.engine import LeaseSchedule
from tests.execution.helpers import error_rows, node, run
from tests.faults.crashing import wait_until
from tests.nodes import ResumePolicy

_MIXED = ["keep", "fail", "twice", "drop", "keep", "keep"]


@pytest.mark.slow
def test_a_record_that_kills_its_worker_is_blamed_alone_and_as_at_home(tmp_path: Path) -> None:
    kinds = _MIXED * 30
    kinds[77] = "die"
    dataset = input_of(tmp_path, kinds)
    both(tmp_path, dataset, works(), Watched(agents=2, cpus_per_agent=2))
    rows = error_rows(node(tmp_path / "away"))
    assert [row["index"] for row in rows if row["exception"] == "WorkerDied"] == [77]


@pytest.mark.slow
def test_a_worker_that_is_killed_once_costs_no_record(tmp_path: Path) -> None:
    kinds = _MIXED * 50
    kinds[120] = "die once"
    dataset = input_of(tmp_path, kinds)
    operator = works(flag=str(tmp_path / "flag"), seconds=0.001)
    both(tmp_path, dataset, operator, Watched(agents=2))


@pytest.mark.slow
def test_an_agent_that_is_killed_is_replaced_and_no_record_is_blamed(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, _MIXED * 100)
    cluster = Watched(agents=2)
    listener = Meanwhile(50, lambda: kill_one(cluster))
    both(tmp_path, dataset, works(seconds=0.005), cluster, progress=listener)
    assert any("died (killed by SIGKILL)" in note for note in listener.notes)
    assert len(cluster.pools[0].processes) == 3
    assert not cluster.alive()


@pytest.mark.slow
@pytest.mark.parametrize("early", [True, False], ids=["thawed early", "thawed at the end"])
def test_a_frozen_agent_is_replaced_and_each_record_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    silent_after(monkeypatch, 8.0)
    dataset = input_of(tmp_path, _MIXED * 400)
    cluster = Watched(agents=2)
    frozen: list[psutil.Process] = []

    def freeze() -> None:
        frozen.extend(family(cluster.alive()[0]))
        for process in frozen:
            process.suspend()

    def thaw() -> None:
        for process in frozen:
            with suppress(psutil.NoSuchProcess):
                process.resume()

    listener = Meanwhile(50, freeze)
    listener.on_note = lambda text: thaw() if early and "silent" in text else None
    try:
        both(tmp_path, dataset, works(seconds=0.005), cluster, progress=listener)
    finally:
        thaw()
    assert any("has been silent for 8 s" in note for note in listener.notes)
    assert len(cluster.pools[0].processes) == 3
    wait_until(lambda: not any(map(psutil.Process.is_running, frozen)), 20, "all have ended")
    assert [path.name for path in node(tmp_path / "away").checkpoints.parent.iterdir()] == [
        path.name for path in node(tmp_path / "home").checkpoints.parent.iterdir()
    ]


@pytest.mark.slow
def test_an_agent_that_is_cut_off_is_replaced_and_what_it_says_later_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent_after(monkeypatch, 2.0)
    counts = _watch_settling(monkeypatch)
    dataset = input_of(tmp_path, _MIXED * 300)
    cluster = Cuttable(agents=2)

    def whole() -> threading.Event:
        return cluster.pools[0].links[0].whole  # type: ignore[attr-defined, no-any-return]

    listener = Meanwhile(50, lambda: whole().clear())
    late = Meanwhile(len(_MIXED) * 300 * 9 // 10, lambda: whole().set())
    listener.on_update = late.update
    both(tmp_path, dataset, works(seconds=0.01), cluster, progress=listener)

    assert any("has been silent for 2 s" in note for note in listener.notes)
    assert late.acted.is_set()
    assert False in counts  # spans that came too late
    assert len(cluster.pools[0].processes) >= 3
    assert not cluster.alive()


def _watch_settling(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets, for each span that the head hears of, whether it counts."""
    counts: list[bool] = []
    settle = LeaseSchedule.accept

    def watched(*args: Any) -> bool:
        counts.append(settle(*args))
        return counts[-1]

    monkeypatch.setattr(LeaseSchedule, "accept", watched)
    return counts


@pytest.mark.slow
def test_after_the_death_of_the_head_its_agents_end_and_the_next_run_resumes(
    tmp_path: Path, run_python
) -> None:
    dataset = input_of(tmp_path, _MIXED * 100)
    home = run(works(seconds=0.005), dataset, node(tmp_path / "home"))
    me = psutil.Process()
    before = set(me.children(recursive=True))  # such as warm interpreters of other tests
    child = os.fork()
    if not child:
        cluster = Watched(agents=2)
        die = Meanwhile(100, lambda: os.kill(os.getpid(), signal.SIGKILL))
        run(works(seconds=0.005), dataset, node(tmp_path / "away"), cluster=cluster, progress=die)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    away = run(
        works(seconds=0.005),
        dataset,
        node(tmp_path / "away"),
        cluster=Watched(agents=2),
        resume=ResumePolicy.AUTO,
    )
    assert away.manifest.resumed >= 100
    assert (
        node(tmp_path / "away").result.read_bytes() == node(tmp_path / "home").result.read_bytes()
    )
    assert away.manifest.drops == home.manifest.drops
    wait_until(lambda: set(me.children(recursive=True)) <= before, 20, "agents have ended")


@pytest.mark.slow
def test_a_stop_ends_the_agents_and_keeps_the_finished_records(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, _MIXED * 100)
    cluster = Watched(agents=2)
    listener = Meanwhile(50, lambda: None)
    with pytest.raises(RunStoppedError, match="enough"):
        run(
            works(seconds=0.005),
            dataset,
            node(tmp_path),
            cluster=cluster,
            progress=listener,
            should_stop=lambda: "enough" if listener.acted.is_set() else None,
        )
    assert not cluster.alive()
    report = run(works(seconds=0.005), dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert report.manifest.resumed >= 50


@pytest.mark.slow
def test_the_first_failed_record_ends_the_run_if_failures_are_not_ignored(tmp_path: Path) -> None:
    dataset = input_of(tmp_path, ["keep"] * 200 + ["fail"] + ["keep"] * 20)
    with pytest.raises(RecordError, match=r"record 200 .*line 201.*ValueError") as caught:
        run(works(_ignore_errors=False), dataset, node(tmp_path), cluster=Watched(agents=2))
    assert "works" in caught.value.traceback_text


@pytest.mark.slow
def test_a_time_limit_holds_on_agents(tmp_path: Path) -> None:
    kinds = ["keep"] * 40
    kinds[11] = "hang"
    dataset = input_of(tmp_path, kinds)
    both(tmp_path, dataset, works(_timeout=3.0), Watched(agents=2))
    assert [row["index"] for row in error_rows(node(tmp_path / "away"))] == [11]


@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    told = campaign(tmp_path, kills=4, seed=int(os.environ.get("DATAOPS_SEED", "1")))
    assert told["results"] >= 1
