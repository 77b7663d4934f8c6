"""Tests of a Dagster instance in PostgreSQL with a queue of runs: several pipelines at once."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest

from tests.end_to_end import postgres
from tests.end_to_end.dagster_server import (
    COMMON,
    IN_PROCESS,
    RECORDS,
    Call,
    DagsterServer,
    until,
)
from tests.end_to_end.going_on import UNDISTURBED, check_went_on, gone, interrupted, kill, step_of

pytestmark = [
    pytest.mark.skipif(bool(postgres.missing()), reason=postgres.missing()),
    pytest.mark.timeout(7200),
]

AT_ONCE = 3
QUEUE = f"""
concurrency: {{runs: {{max_concurrent_runs: {AT_ONCE}}}}}
run_coordinator:
  module: dagster.core.run_coordinator
  class: QueuedRunCoordinator
  config: {{dequeue_interval_seconds: 1}}
"""
IMPATIENT = IN_PROCESS | {"resources": {"dataops": {"config": {"lock_seconds": 1.0}}}}
NODES = [f"concurrent_{number}" for number in range(4)]


@pytest.fixture(scope="module")
def database() -> Iterator[postgres.Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    started = postgres.Postgres(folder)
    try:
        yield started
    finally:
        started.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def queued(
    database: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DagsterServer]:
    """Return a server whose instance is in PostgreSQL."""
    home = tmp_path_factory.mktemp("queued") / "home"
    started = DagsterServer(home, COMMON + database.settings + QUEUE, warm=True)
    try:
        yield started
    finally:
        started.stop()


def test_pipelines_run_at_once_as_many_as_the_queue_lets_and_a_killed_one_resumes(
    queued: DagsterServer, database: postgres.Postgres, record_property: Any
) -> None:
    for node in NODES:
        queued.pace(node, 0, held=RECORDS // 10)
    runs = [queued.launch(node, "shout") for node in NODES]
    until(lambda: sum(bool(queued.calls(node)) for node in NODES) == AT_ONCE, "three runs")
    (last,) = [at for at, node in enumerate(NODES) if not queued.calls(node)]
    assert queued.status(runs[last]) == "QUEUED"

    killed = (last + 1) % len(NODES)
    queued.wait_for_calls(NODES[killed], RECORDS // 10)
    kill(step_of(queued.calls(NODES[killed])[0]))
    queued.finish(runs[killed], "FAILURE")
    before = queued.calls(NODES[killed])
    again = queued.reexecute(runs[killed])
    for node in NODES:
        queued.pace(node, 0)
    queued.finish(again, "SUCCESS")
    record_property("done_twice", check_went_on(queued, NODES[killed], again, before))
    for node, run in zip(NODES, runs, strict=True):
        if node != NODES[killed]:
            queued.finish(run, "SUCCESS")
            assert queued.result(node) == UNDISTURBED
            assert len(queued.calls(node)) == RECORDS
    assert int(database.ask("select count(*) from event_logs")) > 100
    assert not list(queued.home.rglob("*.db"))


def test_a_second_run_of_a_pipeline_waits_or_is_refused_by_the_name_of_the_first(
    queued: DagsterServer,
) -> None:
    node = "outliving"
    queued.pace(node, 0, held=100)
    first = queued.launch(node, "shout")
    calls = queued.wait_for_calls(node, 108)
    second = queued.launch(node, "shout", config=IMPATIENT)
    queued.finish(second, "FAILURE")
    assert f"in use by run {first}" in queued.log(second)
    assert queued.status(first) == "STARTED"

    waiting = queued.launch(node, "shout")
    until(lambda: "Started execution of step" in queued.log(waiting), "the third run", pause=0.5)
    assert len(queued.calls(node)) == len(calls)
    queued.terminate(first)
    queued.finish(first, "CANCELED")
    until(lambda: _step_ended(calls[0]), "its end")
    queued.pace(node, 0)
    queued.finish(waiting, "SUCCESS")
    check_went_on(queued, node, waiting, calls)


def _step_ended(call: Call) -> bool:
    try:
        return gone(call.process) or gone(step_of(call))
    except psutil.NoSuchProcess:  # it ended, or became a zombie, between the two questions
        return True


def test_a_database_that_goes_away_for_a_moment_costs_no_record(
    queued: DagsterServer, database: postgres.Postgres
) -> None:
    node = "interrupted"
    run = interrupted(queued, node)
    database.ask(
        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
    )
    queued.pace(node, 0.02)
    queued.finish(run, "SUCCESS")
    assert queued.result(node) == UNDISTURBED
    assert len(queued.calls(node)) == RECORDS


def test_the_instance_that_the_documents_describe_is_reached(
    database: postgres.Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "deployment.md"
    blocks = page.read_text(encoding="utf-8").split("```yaml\n")
    block = next(text for text in blocks if text.startswith("# dagster.yaml"))
    settings = block.partition("```")[0]
    assert "postgresql+psycopg2://" in block.partition("```")[2]
    port = "port: 5432"  # a server on a socket has one too
    listed = settings.replace("hostname: localhost", f"hostname: ''\n      {port}")
    folder = f"postgres?host={database.folder}"
    (tmp_path / "dagster.yaml").write_text(listed.replace("db_name: dagster", f"db_name: {folder}"))
    monkeypatch.setenv("PG_USER", "dagster")
    monkeypatch.setenv("PG_PASSWORD", "any")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_runs_count() >= 0
