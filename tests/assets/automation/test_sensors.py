"""Tests of new input files as partitions: the requests of each tick of the sensor."""

import json
import os
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dagster_dataops import NewFiles
from dagster_dataops.errors import ConfigurationError, NewerVersionError
from tests.assets.helpers import definitions_of, pipeline_of, read_jsonl, write_jsonl
from tests.registries import OperatorRegistry

FILES = dg.DynamicPartitionsDefinition(name="files")
NOW = NewFiles(settle_seconds=0)


class Watching:
    """The sensor of a pipeline over a folder, and ticks of it."""

    def __init__(
        self, inbox: Path, root: Path, operator: Any, instance: dg.DagsterInstance
    ) -> None:
        self.inbox, self.root, self.operator, self.instance = inbox, root, operator, instance
        self.cursor: str | None = None
        self.set(NOW)

    def set(self, options: NewFiles, **keywords: Any) -> None:
        self.definitions = definitions_of(
            pipeline_of(upper=self.operator),
            self.inbox / "{partition}.jsonl",
            self.root,
            partitions_def=FILES,
            new_files=options,
            **keywords,
        )

    def put(self, *names: str) -> None:
        for name in names:
            write_jsonl(self.inbox / f"{name}.jsonl", [{"text": name}])

    def tick(self) -> list[dg.RunRequest]:
        """Evaluate the sensor as the daemon does: cursor, partitions and run keys are kept."""
        sensor = self.definitions.resolve_sensor_def("files_new_files")
        context = dg.build_sensor_context(
            instance=self.instance,
            instance_ref=self.instance.get_ref(),
            cursor=self.cursor,
            definitions=self.definitions,
        )
        with context:
            told = sensor.evaluate_tick(context)
        self.cursor = told.cursor
        for request in told.dynamic_partitions_requests or []:
            self.instance.add_dynamic_partitions(FILES.name or "", request.partition_keys)
        for event in told.asset_events:
            self.instance.report_runless_asset_event(event)
        self.reason = told.skip_message or ""
        return list(told.run_requests or [])

    def run(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_job_def("docs_pipeline")
        return job.execute_in_process(
            instance=self.instance, partition_key=request.partition_key, tags=request.tags
        )


def keys(requests: list[dg.RunRequest]) -> list[str | None]:
    return [request.partition_key for request in requests]


@pytest.fixture
def watching(
    registry: OperatorRegistry, tmp_path: Path, root: Path, stored: dg.DagsterInstance
) -> Watching:
    @registry("data.text", _concurrency_mode="single")
    def upper(record: dict) -> None:
        record["text"] = record["text"].upper()

    return Watching(tmp_path / "inbox", root, upper(), stored)


@pytest.mark.slow
def test_each_new_file_becomes_a_partition_and_a_run(watching: Watching, root: Path) -> None:
    assert watching.tick() == []
    assert watching.reason.startswith("there is no file")
    watching.put("b", "a")
    requests = watching.tick()
    assert keys(requests) == ["b", "a"]  # as they came
    assert watching.instance.get_dynamic_partitions("files") == ["b", "a"]
    for request in requests:
        assert watching.run(request).success
    path = root / "docs" / "upper" / "partitions" / "a" / "upper_results.jsonl"
    assert read_jsonl(path) == [{"text": "A"}]
    assert watching.tick() == []
    assert watching.reason == "nothing new among 2 files"


def test_run_keys_distinguish_contents_of_a_file(watching: Watching) -> None:
    watching.put("a")
    (first,) = watching.tick()
    watching.cursor = None  # reset in the UI: Dagster knows the run key
    assert [request.run_key for request in watching.tick()] == [first.run_key]
    write_jsonl(watching.inbox / "a.jsonl", [{"text": "changed"}])
    watching.cursor = None
    assert [request.run_key for request in watching.tick()] != [first.run_key]


def test_a_file_that_is_still_written_is_not_taken(watching: Watching) -> None:
    watching.set(NewFiles(settle_seconds=0.3))
    watching.put("a")
    assert watching.tick() == []
    assert "1 file changed a moment ago" in watching.reason
    os.utime(watching.inbox / "a.jsonl", (1, 1))  # as cp -p and tar do
    assert watching.tick() == []
    time.sleep(0.35)
    assert keys(watching.tick()) == ["a"]


def test_files_that_are_put_in_place_by_renaming_are_taken_when_they_are_whole(
    watching: Watching,
) -> None:
    watching.put("a")
    (watching.inbox / "a.jsonl").rename(watching.inbox / ".a.jsonl")
    (watching.inbox / "b.jsonl.part").touch()
    (watching.inbox / "folder.jsonl").mkdir()
    (watching.inbox / "gone.jsonl").symlink_to("nowhere")
    assert watching.tick() == []
    (watching.inbox / ".a.jsonl").rename(watching.inbox / "a.jsonl")
    assert keys(watching.tick()) == ["a"]


def test_many_files_are_taken_over_several_ticks_oldest_first(watching: Watching) -> None:
    watching.set(NewFiles(settle_seconds=0, runs_per_tick=4))
    names = [f"{number:02}" for number in range(10)]
    watching.put(*reversed(names))
    for age, name in enumerate(names):
        os.utime(watching.inbox / f"{name}.jsonl", (age, age))
    assert [keys(watching.tick()) for _ in range(4)] == [names[:4], names[4:8], names[8:], []]


@pytest.mark.parametrize("changed", [True, False])
def test_a_changed_file_is_processed_again_on_request(changed: bool, watching: Watching) -> None:
    watching.set(NewFiles(settle_seconds=0, changed=changed))
    watching.put("a", "b")
    (first, _) = watching.tick()
    write_jsonl(watching.inbox / "a.jsonl", [{"text": "changed"}])
    again = watching.tick()
    assert keys(again) == (["a"] if changed else [])
    assert first.run_key not in [request.run_key for request in again]
    assert watching.tick() == []


@pytest.mark.slow
def test_existing_partitions_get_no_run_at_the_sensors_first_tick(
    watching: Watching,
) -> None:
    watching.put("a", "b")
    watching.instance.add_dynamic_partitions("files", ["a", "b"])
    assert watching.run(dg.RunRequest(partition_key="a")).success
    assert keys(watching.tick()) == ["b"]
    assert watching.tick() == []


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        *((odd, "is damaged") for odd in ["{", "[]", "5", '"x"', '{"version": 1}']),
        ('{"version": 0, "files": {"a": "1"}}', "has version 0; this package reads version 1"),
        ('{"version": 1, "files": 3}', "has version 1"),
    ],
)
def test_an_unreadable_cursor_is_named_and_replaced(
    watching: Watching, odd: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    watching.put("a")
    watching.cursor = odd
    assert keys(watching.tick()) == ["a"]
    said = capsys.readouterr().err
    assert f"the cursor {why}, so all files count as new" in said or why in said
    assert odd in said
    watching.tick()
    assert "cursor" not in capsys.readouterr().err


@pytest.mark.parametrize("cursor", ['{"version": 9, "files": {"a": "1"}}', '{"version": 2}'])
def test_a_cursor_of_a_newer_version_is_refused_and_kept(watching: Watching, cursor: str) -> None:
    """Else all files would be processed again."""
    watching.put("a")
    watching.cursor = cursor
    with pytest.raises(
        NewerVersionError, match=r"the cursor of the sensor .* this version reads 1"
    ):
        watching.tick()
    assert watching.cursor == cursor


def test_unknown_fields_of_a_cursor_are_ignored(watching: Watching) -> None:
    watching.put("a")
    watching.tick()
    watching.cursor = json.dumps({**json.loads(watching.cursor or ""), "colour": 1})
    assert watching.tick() == []


def test_deleted_files_are_removed_from_the_cursor(watching: Watching) -> None:
    watching.put("a", "b")
    watching.tick()
    (watching.inbox / "a.jsonl").unlink()
    watching.tick()
    assert list(json.loads(watching.cursor or "{}")["files"]) == ["b"]


def test_each_file_is_reported_as_a_materialization_of_the_source(watching: Watching) -> None:
    watching.put("a")
    watching.tick()
    key = dg.AssetKey(["docs", "inbox"])
    assert watching.instance.get_materialized_partitions(key) == {"a"}


@pytest.mark.slow
def test_without_launching_the_automation_of_the_assets_takes_over(watching: Watching) -> None:
    watching.set(
        NewFiles(settle_seconds=0, launch=False),
        automation_condition=dg.AutomationCondition.eager(),
    )
    upper = dg.AssetKey(["docs", "upper"])
    selection = dg.AssetSelection.assets(upper)
    evaluated = dg.evaluate_automation_conditions(
        watching.definitions, watching.instance, asset_selection=selection
    )
    watching.put("a")
    assert watching.tick() == []
    again = dg.evaluate_automation_conditions(
        watching.definitions,
        watching.instance,
        asset_selection=selection,
        cursor=evaluated.cursor,
    )
    assert again.get_requested_partitions(upper) == {"a"}


@pytest.mark.parametrize(
    ("source", "partitions"),
    [("{partition}.jsonl", dg.StaticPartitionsDefinition(["a"])), ("docs.jsonl", None)],
)
def test_new_files_need_dynamic_partitions(
    source: str, partitions: Any, watching: Watching, root: Path
) -> None:
    ppl = pipeline_of(upper=watching.operator)
    with pytest.raises(ConfigurationError, match="DynamicPartitionsDefinition"):
        definitions_of(ppl, source, root, partitions_def=partitions, new_files=NOW)


def test_impossible_options_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="settle_seconds"):
        NewFiles(settle_seconds=-1)
    with pytest.raises(ConfigurationError, match="runs_per_tick"):
        NewFiles(runs_per_tick=0)
