"""Tests of a server that is killed, stopped and edited during runs; each leaves it running."""

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.end_to_end.dagster_server import (
    IN_PROCESS,
    MULTIPROCESS,
    RECORDS,
    SOUND,
    DagsterServer,
    until,
)
from tests.end_to_end.going_on import (
    UNDISTURBED,
    check_went_on,
    gone,
    interrupted,
    wait_until_no_run_is_left,
)

pytestmark = pytest.mark.timeout(7200)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterServer]:
    """Return a server for this module only."""
    started = DagsterServer(tmp_path_factory.mktemp("mortal") / "home")
    try:
        yield started
    finally:
        started.stop()


def code_server(server: DagsterServer) -> psutil.Process:
    """Return the process in which the code location is loaded."""
    (found,) = [p for p in server.services() if "grpc" in p.cmdline()]
    return found


def test_runs_outlive_the_code_server_and_the_server(mortal: DagsterServer) -> None:
    runs = [interrupted(mortal, "outliving", seconds=0.2)]
    code_server(mortal).kill()
    mortal.reload()
    runs.append(interrupted(mortal, "outliving_processes", MULTIPROCESS, 0.02))
    mortal.kill()
    nodes = ["outliving", "outliving_processes"]
    for node in nodes:
        mortal.pace(node, 0)
        until(lambda node=node: len(mortal.calls(node)) == RECORDS, f"all calls of {node}")
    mortal.start()
    for node, run in zip(nodes, runs, strict=True):
        mortal.finish(run, "SUCCESS")
        assert mortal.result(node) == UNDISTURBED
        assert len(mortal.calls(node)) == RECORDS


def test_a_run_that_ended_with_its_server_resumes_after_the_restart(
    mortal: DagsterServer, record_property: Any
) -> None:
    run = interrupted(mortal, "interrupted")
    mortal.interrupt()
    before = mortal.calls("interrupted")
    assert len(before) < RECORDS
    mortal.pace("interrupted", 0)
    mortal.start()
    assert mortal.status(run) == "FAILURE"
    again = mortal.reexecute(run)
    mortal.finish(again, "SUCCESS")
    record_property("done_twice", check_went_on(mortal, "interrupted", again, before))


def test_a_run_that_was_killed_with_everything_resumes_after_the_restart(
    mortal: DagsterServer, record_property: Any
) -> None:
    interrupted(mortal, "powerless", seconds=0.02)
    mortal.kill_everything()
    before = mortal.calls("powerless")
    until(lambda: all(gone(call.process) for call in before), "the end of the workers")
    mortal.pace("powerless", 0)
    mortal.start()
    again = mortal.launch("powerless", "shout")
    mortal.finish(again, "SUCCESS")
    record_property("done_twice", check_went_on(mortal, "powerless", again, before))


def test_edited_code_starts_afresh_with_a_log_line_unless_resuming_across_code(
    mortal: DagsterServer,
) -> None:
    assets = ("afresh", "fragile"), ("edited", "fragile")
    run = mortal.launch_assets(*assets)
    mortal.finish(run, "FAILURE")
    assert "failed on record 400" in mortal.log(run)

    (mortal.home / "fragile.py").write_text(SOUND)
    mortal.reload()
    config: dict[str, Any] = {"ops": {"edited__fragile": {"config": {"resume": "across_code"}}}}
    again = mortal.launch_assets(*assets, config=IN_PROCESS | config)
    mortal.finish(again, "SUCCESS")
    assert mortal.manifest("edited", "fragile")["resumed"] == 400
    assert "code has changed since, those records are kept as asked" in mortal.log(again)
    assert mortal.manifest("afresh", "fragile")["resumed"] == 0
    assert "starting afresh, without 400 records" in mortal.log(again)
    assert "its code has changed since" in mortal.log(again)
    assert mortal.result("afresh", "fragile").count(b"!") == RECORDS


def test_no_process_of_a_run_is_left(mortal: DagsterServer) -> None:
    wait_until_no_run_is_left(mortal)
