"""Tests of executors by name, and of steps in separate processes under a real instance."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import build_definitions
from dagster_dataops.assets.automation.jobs import JOB_KINDS
from dagster_dataops.assets.executors import executor_of
from tests.assets.helpers import numbered, pipeline_of, read_jsonl, write_jsonl
from tests.registries import OperatorRegistry
from tests.warm_python import WarmPython

SCRIPT = """
import os, sys, time
from pathlib import Path

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline

HOME = Path(__file__).parent


@data_register("data.script", _concurrency_mode="MODE", _ignore_errors=False)
def call(record: dict, node: str) -> dict:
    began = time.monotonic()
    time.sleep(0.02)
    with (HOME / "calls").open("a") as file:
        print(node, os.getpid(), began, time.monotonic(), "sqlalchemy" in sys.modules, file=file)
    return record


def job():
    with pipeline("docs") as ppl:
        for number in range(NODES):
            ppl.add(f"node_{number}", call(node=f"node_{number}"), inputs=[ppl.source])
    return build_definitions(
        ppl,
        source=HOME / "texts.jsonl",
        resource=DataOpsResource(root=str(HOME / "results")),
        executor="multiprocess",
        KEYWORDS
    ).resolve_job_def("docs_pipeline")
"""
RUN = """
import sys

import dagster as dg
import script

with dg.DagsterInstance.get() as instance:
    instance.event_log_storage.set_concurrency_slots("llm", 1)
    config = {"execution": {"config": {"max_concurrent": int(sys.argv[1])}}}
    recon = dg.reconstructable(script.job)
    with dg.execute_job(recon, instance=instance, run_config=config) as result:
        assert result.success
"""


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython("dagster_dataops.assets.definitions") as warm:
        yield warm


def run_steps(
    python: WarmPython, folder: Path, mode: str, nodes: int, keywords: str = ""
) -> list[tuple[str, int, float, float, bool]]:
    """Run siblings in separate processes; return (node, process, start, end, Dagster)."""
    write_jsonl(folder / "texts.jsonl", list(numbered(24)))
    code = SCRIPT.replace("MODE", mode).replace("NODES", str(nodes)).replace("KEYWORDS", keywords)
    (folder / "script.py").write_text(code)
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    python.run(RUN, str(nodes), folder=folder, DAGSTER_HOME=str(folder))
    for number in range(nodes):
        node = f"node_{number}"
        rows = read_jsonl(folder / "results" / "docs" / node / f"{node}_results.jsonl")
        assert rows == list(numbered(24))
    found = []
    for line in (folder / "calls").read_text().splitlines():
        node, process, began, ended, dagster = line.split()
        found.append((node, int(process), float(began), float(ended), dagster == "True"))
    return found


def test_an_executor_has_a_name_or_is_the_users_own() -> None:
    assert executor_of("in_process") is dg.in_process_executor
    assert executor_of(dg.multiprocess_executor) is dg.multiprocess_executor
    assert executor_of("multiprocess") is executor_of("multiprocess")
    assert executor_of("multiprocess").name == "multiprocess"


def test_an_unknown_executor_is_refused_by_its_name() -> None:
    name: Any = "threads"
    with pytest.raises(dg.DagsterInvalidDefinitionError, match="'threads' is neither in_process"):
        executor_of(name)


def test_all_jobs_of_assets_have_the_executor_that_was_chosen(
    registry: OperatorRegistry, records: Callable[[int], Path]
) -> None:
    @registry("data.text")
    def same(record: dict) -> dict:
        return record

    ppl = pipeline_of(same=same())
    definitions = build_definitions(ppl, source=records(1), executor="multiprocess", jobs=JOB_KINDS)
    found = {
        job.name: definitions.resolve_job_def(job.name).executor_def.name
        for job in definitions.jobs or ()
    }
    assert found == {
        "docs_pipeline": "multiprocess",
        "docs_refresh": "multiprocess",
        "docs_retry_failed_records": "multiprocess",
        "docs_preview": "in_process",
    }
    assert definitions.executor is None


@pytest.mark.slow
def test_the_server_of_steps_has_imported_dagster_and_shares_no_thread_or_file(
    python: WarmPython, tmp_path: Path
) -> None:
    code = """
import json, os, sys, threading
import dagster_dataops.assets.definitions
def files():
    opened = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    found = {os.readlink(path) for path in opened if os.path.lexists(path)}
    return {path for path in found if ".so" not in path}  # some systems keep libraries open
before = files()
import dagster_dataops.assets.preload
print(json.dumps([
    "sqlalchemy" in sys.modules, len(threading.enumerate()), sorted(files() - before)
]))
"""
    assert json.loads(python.run(code, folder=tmp_path)) == [True, 1, []]


@pytest.mark.slow
def test_a_failed_warm_up_only_makes_the_server_slow(python: WarmPython, tmp_path: Path) -> None:
    code = """
import dagster as dg

def fail(*_, **__):
    raise RuntimeError("no memory")

dg.materialize = fail
import dagster_dataops.assets.preload
print("up")
"""
    assert python.run(code, folder=tmp_path).strip() == "up"


@pytest.mark.slow
def test_a_pool_of_one_slot_keeps_steps_from_calling_at_the_same_time(
    python: WarmPython, tmp_path: Path
) -> None:
    keywords = 'pools={"node_0": "llm", "node_1": "llm"},'
    calls = run_steps(python, tmp_path, "single", 2, keywords)
    spans = {
        node: (min(c[2] for c in calls if c[0] == node), max(c[3] for c in calls if c[0] == node))
        for node in ("node_0", "node_1")
    }
    assert len({call[1] for call in calls}) == 2
    (_, first_end), (second_start, _) = sorted(spans.values())
    assert first_end < second_start
