import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dagster_dataops.data import data_register
from dagster_dataops.execution import fork_server
from dagster_dataops.execution.report import RunReport
from tests.execution.helpers import node, run, second_thread, write_input
from tests.faults.crashing import alive, wait_until


@data_register("data.spare_tests", _concurrency_mode="process", _max_workers=1)
def who(record):
    return {"worker": os.getpid(), "variable": os.environ.get("WHO")}


@pytest.fixture
def report(tmp_path: Path) -> Iterator[RunReport]:
    """A run, after which there is a server with a spare."""
    with second_thread(True):
        yield _run(tmp_path, "first")


def _run(tmp_path: Path, name: str) -> RunReport:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    return run(who(), dataset, node(tmp_path), run=name)


def _worker(report: RunReport) -> int:
    return next(iter(report.dataset))["worker"]


def _spare() -> psutil.Process:
    server = psutil.Process(fork_server.server_pid())
    wait_until(lambda: len(server.children()) == 1, 5, "there is a spare")
    return server.children()[0]


def test_the_next_worker_is_forked_before_it_is_wanted(
    tmp_path: Path, report: RunReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = _spare()
    assert spare.pid != _worker(report)
    monkeypatch.setenv("WHO", "me")
    with second_thread(True):
        second = _run(tmp_path, "second")
    assert next(iter(second.dataset)) == {"worker": spare.pid, "variable": "me"}
    assert _spare().pid != spare.pid


def test_a_spare_that_was_killed_is_missed_by_nobody(tmp_path: Path, report: RunReport) -> None:
    spare = _spare()
    spare.kill()
    wait_until(lambda: not spare.is_running(), 5, "it is reaped")
    time.sleep(0.1)
    assert not psutil.Process(fork_server.server_pid()).children()  # not one after the other
    with second_thread(True):
        assert _worker(_run(tmp_path, "second")) != spare.pid
    assert _spare()


def test_a_spare_that_dies_just_when_it_is_wanted_is_replaced(
    tmp_path: Path, report: RunReport
) -> None:
    spare, server = _spare(), psutil.Process(fork_server.server_pid())
    server.suspend()  # so that it learns of that and of what is wanted at once
    spare.kill()
    wait_until(lambda: spare.status() == psutil.STATUS_ZOMBIE, 5, "it is dead")
    with second_thread(True):
        os.kill(server.pid, signal.SIGCONT)
        assert _worker(_run(tmp_path, "second")) not in (0, spare.pid)


def test_what_a_spare_was_told_to_do_before_is_not_for_the_worker(
    tmp_path: Path, report: RunReport
) -> None:
    spare = _spare()
    spare.send_signal(signal.SIGTERM)
    spare.send_signal(signal.SIGINT)
    with second_thread(True):
        assert _worker(_run(tmp_path, "second")) == spare.pid


def test_a_spare_ends_with_its_server(report: RunReport) -> None:
    spare, server = _spare(), fork_server.server_pid()
    fork_server._end_server()
    assert not alive([server, spare.pid])
    assert not spare.is_running()  # nor is it a zombie


def test_a_spare_ends_with_a_server_that_was_killed(report: RunReport) -> None:
    spare = _spare()
    os.kill(fork_server.server_pid() or 0, signal.SIGKILL)
    wait_until(lambda: not alive([spare.pid]), 5, "it is gone")
