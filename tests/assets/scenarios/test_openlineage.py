"""Test that column schema and column lineage of results come out of dagster-openlineage."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import data
from tests.assets.helpers import definitions_of, pipeline_of
from tests.registries import OperatorRegistry

pytest.importorskip(
    "dagster_openlineage", reason="there is no dagster-openlineage (pip install it to test it)"
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

INSTANCE = """
telemetry: {enabled: false}
event_log_storage:
  module: dagster_openlineage.storage
  class: OpenLineageEventLogStorage
  config:
    namespace: team
    wrapped:
      module: dagster._core.storage.event_log
      class: SqliteEventLogStorage
      config: {base_dir: BASE}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an instance whose events go to the file `events` in it."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "dagster.yaml").write_text(INSTANCE.replace("BASE", str(folder / "storage")))
    transport = {"type": "file", "log_file_path": str(folder / "events"), "append": True}
    config = folder / "openlineage.yml"
    config.write_text(json.dumps({"transport": transport}))
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    return folder


def facets_by_dataset(events: Path) -> dict[str, Any]:
    """Return the facets of each dataset that a completed event writes."""
    found = {}
    for line in events.read_text().splitlines():
        event = json.loads(line)
        for dataset in event.get("outputs") or ():
            if event.get("eventType") == "COMPLETE":
                found[dataset["name"]] = dataset["facets"]
    return found


@pytest.mark.slow
def test_columns_and_their_origins_are_in_the_events(
    registry: OperatorRegistry, records: Callable[[int], Path], root: Path, home: Path
) -> None:
    @registry("data.lined")
    def longer(record: dict) -> dict:
        return {**record, "size": len(str(record))}

    ppl = pipeline_of(
        measured=longer(), kept=data.shape.Rename(keys={"id": "number"}, _max_workers=1)
    )
    definitions = definitions_of(ppl, records(5), root)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        job = definitions.resolve_job_def("docs_pipeline")
        assert job.execute_in_process(instance=instance).success

    found = facets_by_dataset(home / "events")
    measured, kept = found["docs/measured"], found["docs/kept"]
    assert [(one["name"], one["type"]) for one in measured["schema"]["fields"]] == [
        ("id", "integer"),
        ("text", "string"),
        ("size", "integer"),
    ]
    assert [one["name"] for one in kept["schema"]["fields"]] == ["number", "text", "size"]
    lineage = kept["columnLineage"]["fields"]
    origins = {
        column: [(one["namespace"], one["name"], one["field"]) for one in each["inputFields"]]
        for column, each in lineage.items()
    }
    assert origins["size"] == [("team", "docs/measured", "size")]
    assert origins["number"] in ([("team", "docs/measured", "id")], [])
