"""Artefacts under a real Dagster whose steps are processes that are killed."""

import json
from collections.abc import Callable
from pathlib import Path

from dagster_dataops import load_artefact
from tests.assets.helpers import numbered, read_jsonl, write_jsonl

SCRIPT = """
import os, signal, sys
from pathlib import Path

import dagster as dg

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline

HOME = Path(__file__).parent
group = data_register.new_group("script")


def note(text: str) -> None:
    with (HOME / "calls").open("a") as file:
        print(text, file=file, flush=True)


def die_once(name: str) -> None:
    if not (HOME / name).exists():
        (HOME / name).touch()
        os.kill(os.getpid(), signal.SIGKILL)


class Index(group):
    def build(self, records, folder):
        for number, record in enumerate(records):
            (folder / f"{number}").write_text(record["text"])
            if number == 7:
                die_once("died in build")
        note(f"built {folder.name}")


class Search(group):
    _concurrency_mode = "thread"
    _max_workers = 1

    def __init__(self, index, **kwargs):
        super().__init__(**kwargs)
        self.index = index

    def forward(self, record):
        record["found"] = (self.index / f"{record['id']}").read_text()
        note(f"searched {record['id']}")
        if record["id"] == 12:
            die_once("died in search")


def job():
    with pipeline("docs") as ppl:
        ppl.index = Index()
        ppl.search = Search(index=ppl.index)
    return build_definitions(
        ppl,
        source=HOME / "texts.jsonl",
        resource=DataOpsResource(root=str(HOME / "results"), flush_seconds=0),
        executor="multiprocess",
    ).resolve_job_def("docs_pipeline")


if __name__ == "__main__":
    import script

    (HOME / "dagster.yaml").write_text("telemetry: {enabled: false}\\n")
    os.environ["DAGSTER_HOME"] = str(HOME)
    with dg.DagsterInstance.get() as instance:
        options = None
        for expected in (False, False, True):
            recon = dg.reconstructable(script.job)
            with dg.execute_job(
                recon, instance=instance, reexecution_options=options
            ) as result:
                assert result.success is expected
                options = dg.ReexecutionOptions.from_failure(result.run_id, instance)
                note("next")
                if expected:
                    events = result.events_for_node("docs__search")
                    (made,) = [e for e in events if e.is_step_materialization]
                    resumed = made.materialization.metadata["dagster_dataops/rows_resumed"]
                    print(resumed.value)
"""


def test_killed_steps_leave_whole_artefacts_and_are_gone_on_from(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    write_jsonl(tmp_path / "texts.jsonl", list(numbered(20)))
    printed = run_python(SCRIPT, PYTHONPATH=f"{Path(__file__).parents[2]}:{tmp_path}")
    rows = read_jsonl(tmp_path / "results" / "docs" / "search" / "search_results.jsonl")
    assert [row["found"] for row in rows] == [f"text {number}" for number in range(20)]
    first, second, third = (tmp_path / "calls").read_text().split("next\n")[:3]
    assert first == ""
    assert second.count("built") == 1
    assert "built" not in third  # the artefact is not built for the second attempt of its user
    resumed = int(printed.split()[-1])
    assert resumed >= 11
    assert third.count("searched") == 20 - resumed
    version = load_artefact(tmp_path / "results" / "docs" / "index")
    assert version.files == 20
    folders = [path for path in version.path.parent.iterdir() if path.is_dir()]
    assert folders == [version.path]
    manifest = tmp_path / "results" / "docs" / "index" / "index_results.jsonl.json"
    assert json.loads(manifest.read_text())["artefact"] == version.digest
