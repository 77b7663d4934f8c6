"""Tests of the shipped definitions.py: it loads and materializes, twice with equal bytes."""

import itertools
import json
import sysconfig
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.warm_python import MODULE, WarmPython

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
NODES = (
    "normalized",
    "substantial",
    "prose",
    "unique",
    "counted",
    "chunks",
    "file_facts",
    "training",
)

_RUN = """
import json, os, sys, types
import definitions
import dagster as dg

definitions.sysconfig = types.ModuleType("sysconfig")
definitions.sysconfig.get_paths = lambda: {"stdlib": sys.argv[1]}

with dg.DagsterInstance.get() as instance:
    job = definitions.defs.resolve_job_def("corpus_pipeline")
    results = [job.execute_in_process(instance=instance) for _ in range(2)]
    versions = [
        {
            event.asset_key.path[-1]: event.materialization.tags["dagster/data_version"]
            for event in result.get_asset_materialization_events()
        }
        for result in results
    ]
schedule = definitions.defs.resolve_schedule_def("corpus_pipeline_schedule")
print(json.dumps({"versions": versions, "cron": schedule.cron_schedule}))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dagster_home")
    (path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    return path


@pytest.fixture(scope="module")
def told(home: Path, warm_dagster: WarmPython) -> dict[str, Any]:
    """Return the reports of two materializations of everything, with a part of the docstrings."""
    part, library = home / "stdlib", Path(sysconfig.get_paths()["stdlib"])
    part.mkdir()
    for path in [*library.glob("[a-d]*.py"), library / "json", library / "email"]:
        (part / path.name).symlink_to(path)
    output = warm_dagster.run(_RUN, str(part), folder=home, DAGSTER_HOME=str(home))
    answer: dict[str, Any] = json.loads(output.splitlines()[-1])
    return answer


def manifest(home: Path, node: str) -> dict[str, Any]:
    path = home / "results" / "corpus" / node / f"{node}_results.jsonl.json"
    found: dict[str, Any] = orjson.loads(path.read_bytes())
    return found


def rows(home: Path, node: str) -> list[dict[str, Any]]:
    path = home / "results" / "corpus" / node / f"{node}_results.jsonl"
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_the_workspace_is_valid(home: Path, warm_dagster: WarmPython) -> None:
    command = ["dagster", "definitions", "validate", "-w", str(ROOT / "workspace.yaml")]
    warm_dagster.run(MODULE, *command, folder=home, DAGSTER_HOME=str(home))


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize("node", NODES)
def test_the_counts_of_every_node_reconcile(node: str, home: Path) -> None:
    found = manifest(home, node)
    assert found["done"]
    assert found["rows_in"] > 0
    assert found["resumed"] == 0
    assert found["rows_out"] == len(rows(home, node))
    if node not in {"chunks", "training"}:
        assert found["rows_in"] == found["rows_out"] + found["dropped"] + found["failed"]
    errors = home / "results" / "corpus" / node / f"{node}_error.jsonl"
    failed = len(errors.read_bytes().splitlines()) if errors.exists() else 0
    assert found["failed"] == failed


@pytest.mark.usefixtures("told")
def test_every_node_takes_the_result_of_the_node_before_it(home: Path) -> None:
    chain = ("documents", "normalized", "substantial", "prose", "unique", "counted", "chunks")
    for before, after in itertools.pairwise(chain):
        assert manifest(home, after)["rows_in"] == manifest(home, before)["rows_out"]
    both = manifest(home, "chunks")["rows_out"] + manifest(home, "file_facts")["rows_out"]
    assert manifest(home, "training")["rows_in"] == both


@pytest.mark.usefixtures("told")
def test_the_results_equal_those_of_the_operators(home: Path) -> None:
    unique = [" ".join(row["text"].split()).casefold() for row in rows(home, "unique")]
    assert len(unique) == len(set(unique)) > 100
    assert all(len("".join(row["text"].split())) >= 120 for row in rows(home, "substantial"))
    training = rows(home, "training")
    assert all(len(row["text"]) <= 800 for row in training)
    assert all({"words", "keywords", "chunk", "file_lines"} <= row.keys() for row in training)
    known = {row["id"]: row["file_bytes"] for row in rows(home, "file_facts")}
    assert all(row["file_bytes"] == known.get(row["id"]) for row in training)


def test_a_second_run_gives_equal_content(told: dict[str, Any]) -> None:
    first, second = told["versions"]
    assert first == second
    assert set(first) == {"documents", *NODES}


def test_everything_is_materialized_every_night_if_the_schedule_is_switched_on(
    told: dict[str, Any],
) -> None:
    assert told["cron"] == "0 2 * * *"


_LOADED_IN_A_WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent))
import operators_beside_dagster as module

print(module.loaded(module.names()))
"""
_MODULE = """
import sys
import threading

import dagster as dg
from dagster_dataops import build_definitions, data_register, pipeline

@data_register("data.probe", _concurrency_mode="process", _max_workers=2)
def names(record: dict) -> dict:
    return {"dagster": sorted(name for name in sys.modules if name.split(".")[0] == "dagster")}

def loaded(operator):
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # so that none is forked
    assert "dagster" in sys.modules
    return operator([{"id": 1}, {"id": 2}])
"""


def test_workers_do_not_import_dagster_though_the_module_of_their_operator_does(
    tmp_path: Path, run_python: Any
) -> None:
    (tmp_path / "operators_beside_dagster.py").write_text(_MODULE)
    assert run_python(_LOADED_IN_A_WORKER) == "[{'dagster': []}, {'dagster': []}]\n"
