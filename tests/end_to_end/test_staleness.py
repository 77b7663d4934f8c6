"""Tests of fresh and stale assets, by Dagster's own GraphQL, on an instance on disk.

Two operators: ``kept`` drops marked records, ``counted`` measures the others.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.assets.helpers import digest_of, numbered, write_jsonl
from tests.warm_python import WarmPython

QUERY = "{assetNodes{assetKey{path} staleStatus staleCauses{reason}}}"
DEFINITIONS = """
import os
from pathlib import Path

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline

HOME = Path(os.environ["DAGSTER_HOME"])


@data_register("data.versions", _concurrency_mode="single")
def keep(record: dict, mark: str = "drop") -> list[dict] | None:
    return [] if record["text"] == mark else None


@data_register("data.versions", _concurrency_mode="single")
def count(record: dict) -> dict:
    return record | {"length": len(record["text"])}


with pipeline("docs") as ppl:
    ppl.kept = keep(mark=MARK)
    ppl.counted = count()

defs = build_definitions(
    ppl, source=HOME / "texts.jsonl", resource=DataOpsResource(root=str(HOME / "results"))
)
"""
GRAPHQL = """
import os, runpy, signal, socket, sys, time
from dagster_graphql.cli import main as graphql

server = os.fork()  # of the imported modules: a new interpreter would import them again
if not server:
    sys.argv = "dagster api grpc --module-name versions --socket versions.socket".split()
    runpy.run_module("dagster", run_name="__main__")
try:
    with socket.socket(socket.AF_UNIX) as listening:
        while listening.connect_ex("versions.socket"):
            assert os.waitpid(server, os.WNOHANG) == (0, 0), "the code server has ended"
            time.sleep(0.05)
    sys.argv = ["dagster-graphql", "--grpc-socket", "versions.socket", "--text", sys.argv[1]]
    graphql()
finally:
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    os.remove("versions.socket")
"""
MATERIALIZE = """
import sys
import dagster as dg
import versions

keys = [dg.AssetKey(name.split("/")) for name in sys.argv[1:]]
job = versions.defs.resolve_implicit_global_asset_job_def()
with dg.DagsterInstance.get() as instance:
    job.execute_in_process(instance=instance, asset_selection=keys or None)
"""


class Project:
    """A code location on disk, its instance, and its only source."""

    def __init__(self, home: Path, python: WarmPython) -> None:
        self.home = home
        self._python = python
        self.source = home / "texts.jsonl"
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        self.write("'drop'")

    def write(self, mark: str, code: str = DEFINITIONS) -> None:
        """Write the definitions, with a value of the option."""
        (self.home / "versions.py").write_text(code.replace("MARK", mark))

    def write_source(self, *more: str) -> None:
        """Write eight records and ``more`` texts."""
        write_jsonl(self.source, [*numbered(8), *({"id": 9, "text": text} for text in more)])

    def report(self) -> None:
        """Report the source's content, as a sensor does."""
        with dg.DagsterInstance.get() as instance:
            tags = {"dagster/data_version": digest_of(self.source)}
            event = dg.AssetMaterialization(["docs", "texts"], tags=tags)
            instance.report_runless_asset_event(event)

    def materialize(self, *keys: str) -> None:
        self._run(MATERIALIZE, *keys)

    def stale(self) -> dict[str, list[str]]:
        """Return the stale assets with their root causes."""
        lines = self._run(GRAPHQL, QUERY).splitlines()
        answer = json.loads(next(line for line in lines if line.startswith('{"data"')))
        found = {}
        for node in answer["data"]["assetNodes"]:
            if node["staleStatus"] != "FRESH":
                causes = [cause["reason"] for cause in node["staleCauses"]]
                found[node["assetKey"]["path"][-1]] = causes or [node["staleStatus"]]
        return found

    def _run(self, code: str, *arguments: str) -> str:
        return self._python.run(code, *arguments, folder=self.home, DAGSTER_HOME=str(self.home))


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython("dagster_graphql.cli", "dagster_dataops.assets.preload") as warm:
        yield warm


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: WarmPython) -> Project:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    made = Project(tmp_path, python)
    made.write_source()
    made.materialize()
    return made


def test_only_changed_content_makes_results_stale(project: Project) -> None:
    project.write_source()  # equal bytes, in another file
    project.report()
    assert project.stale() == {}

    project.write_source("drop")
    project.report()
    assert project.stale() == {"kept": ["has a new data version"]}
    project.materialize("docs/kept")  # the result has equal content
    assert project.stale() == {}

    project.write_source("drop", "new")
    project.materialize("docs/kept")  # reports the file that it reads
    assert project.stale() == {"counted": ["has a new data version"]}


def test_edited_code_and_changed_options_make_results_stale(project: Project) -> None:
    project.write("'drop'", DEFINITIONS.replace("len(record", "2 * len(record"))
    assert project.stale() == {"counted": ["has a new code version"]}

    project.write("'other'")
    assert project.stale() == {"kept": ["has a new code version"]}
