"""Tests of backfills and sensors of partitioned pipelines, with the daemon of a real Dagster."""

import os
import signal
from collections import Counter
from typing import Any

import pytest

from tests.assets.helpers import read_jsonl, write_jsonl
from tests.end_to_end.dagster_server import FINISHED, DagsterServer, until
from tests.end_to_end.rows import row
from tests.faults.cases import cases

LONG = 40  # records

_BACKFILL = """
mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }
"""
_RUNS = """
query($key: String!, $value: String!) {
  runsOrError(filter: {tags: [{key: $key, value: $value}]}) {
    ... on Runs { results { runId status tags { key value } } } } }
"""
_SENSOR = """
query($sensor: SensorSelector!) { sensorOrError(sensorSelector: $sensor) { ... on Sensor { id } } }
"""
_STOP = """
mutation($id: String!) { stopSensor(id: $id) { ... on StopSensorMutationResult {
  instigationState { status } } } }
"""
_PARTITIONS = """
query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  assetPartitionStatuses { ... on DefaultPartitionStatuses { materializedPartitions } } } } }
"""


class Partitioned:
    """A partitioned pipeline on a server.

    Args:
        server: The server, with the code location of partitioned pipelines.
        name: The name of the pipeline.
    """

    def __init__(self, server: DagsterServer, name: str) -> None:
        self.server = server
        self.home = server.home
        self.name = name

    def write(self, partition: str, texts: list[str]) -> None:
        """Write the records of a partition; readers see all of them or none."""
        folder = self.home / self.name
        folder.mkdir(exist_ok=True)
        draft = write_jsonl(folder / f".{partition}.jsonl", [{"text": text} for text in texts])
        draft.rename(folder / f"{partition}.jsonl")

    def backfill(self, *keys: str) -> str:
        asset = {"path": [self.name, "upper"]}
        params = {"assetSelection": [asset], "partitionNames": keys}
        answer = self.server.ask(_BACKFILL, params=params)["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        found: str = answer["backfillId"]
        return found

    def runs(self, tag: str, value: str) -> list[dict[str, Any]]:
        found = self.server.ask(_RUNS, key=tag, value=value)["runsOrError"]["results"]
        runs: list[dict[str, Any]] = found
        return runs

    def runs_of(self, backfill: str) -> list[dict[str, Any]]:
        """Return the runs of a backfill when all of them have ended."""

        def ended() -> list[dict[str, Any]]:
            runs = self.runs("dagster/backfill", backfill)
            return runs if all(run["status"] in FINISHED for run in runs) else []

        return until(ended, "the end of the backfill", pause=0.5)

    def stop_sensor(self, name: str) -> None:
        """Stop a sensor: its ticks take a part of the time of all tests of the server."""
        place = {"repositoryName": "__repository__", "repositoryLocationName": self.server.location}
        found = self.server.ask(_SENSOR, sensor=place | {"sensorName": name})["sensorOrError"]
        stopped = self.server.ask(_STOP, id=found["id"])["stopSensor"]
        assert stopped["instigationState"]["status"] == "STOPPED", stopped

    def materialized(self, asset: str = "upper") -> set[str]:
        answer = self.server.ask(_PARTITIONS, path=[self.name, asset])["assetNodeOrError"]
        return set(answer["assetPartitionStatuses"]["materializedPartitions"])

    def calls(self) -> list[tuple[str, int]]:
        """Return the text of every call, and the process of the step."""
        path = self.home / f"{self.name}.calls"
        lines = path.read_text().splitlines() if path.exists() else []
        fields = [line.rpartition(" ") for line in lines]
        return [(text, int(process)) for text, _, process in fields]

    def called(self) -> Counter[str]:
        return Counter(text for text, _ in self.calls())

    def texts(self, partition: str) -> list[str]:
        path = self.home / "results" / self.name / "upper" / "partitions" / partition
        return [row["text"] for row in read_jsonl(path / "upper_results.jsonl")]


@row
def test_a_backfill_is_one_run_and_the_next_run_makes_the_failed_partitions(
    server: DagsterServer, record: Any
) -> None:
    letters = Partitioned(server, "letters")
    for key in "abc":
        letters.write(key, [f"{key}0", f"{key}1"])
    failing = server.home / "letters.failing"
    failing.write_text("a1")
    (run,) = letters.runs_of(letters.backfill("c", "a", "b"))
    assert run["status"] == "FAILURE"
    assert "1 of 3 partitions failed: a (RecordError" in server.log(run["runId"])
    assert letters.materialized() == {"b", "c"}

    failing.unlink()
    (run,) = letters.runs_of(letters.backfill("a"))
    assert run["status"] == "SUCCESS", server.log(run["runId"])
    assert letters.materialized() == {"a", "b", "c"}
    assert letters.texts("a") == ["A0", "A1"]
    assert letters.called() == {"c0": 1, "c1": 1, "a0": 1, "a1": 2, "b0": 1, "b1": 1}


@row
def test_the_sensor_launches_one_run_for_each_file_over_several_ticks(
    server: DagsterServer, record: Any
) -> None:
    inbox = Partitioned(server, "inbox")
    names = [f"file {number}" for number in range(3)]
    for name in names:
        inbox.write(name, [name])

    def finished() -> list[dict[str, Any]]:
        runs = inbox.runs("dagster/sensor_name", "inbox_files_new_files")
        done = [run for run in runs if run["status"] in FINISHED]
        return done if len(done) >= len(names) else []

    runs = until(finished, "a run of every file", pause=0.5)
    inbox.stop_sensor("inbox_files_new_files")
    tags = [{tag["key"]: tag["value"] for tag in run["tags"]} for run in runs]
    assert sorted(tag["dagster/partition"] for tag in tags) == names
    assert {run["status"] for run in runs} == {"SUCCESS"}
    assert [inbox.texts(name) for name in names] == [[name.upper()] for name in names]
    assert inbox.materialized("inbox") == set(names)


@pytest.mark.parametrize("how", cases(["relaunched"], campaign=["relaunched", "reexecuted"]))
@row
def test_a_killed_run_of_several_partitions_resumes_within_a_partition(
    server: DagsterServer, record: Any, how: str
) -> None:
    long, keys = Partitioned(server, f"long_{how}"), ["c", "a", "b"]
    for key in keys:
        long.write(key, [f"{key}{number}" for number in range(LONG)])
    slow = server.home / f"long_{how}.slow"
    slow.touch()
    backfill = long.backfill(*keys)
    wanted = LONG + LONG // 2
    until(lambda: len(long.calls()) > wanted, "the middle of the second one")
    os.kill(long.calls()[-1][1], signal.SIGKILL)
    (killed,) = long.runs_of(backfill)
    assert killed["status"] == "FAILURE"
    assert long.materialized() == set()

    slow.unlink()
    if how == "relaunched":
        (run,) = long.runs_of(long.backfill(*keys))
        again = run["runId"]
    else:
        again = server.reexecute(killed["runId"])
    server.finish(again, "SUCCESS")

    log = server.log(again)
    assert f"already finished by run {killed['runId']}: {LONG} records" in log
    assert f" records settled by run {killed['runId']}" in log
    calls = long.called()
    assert calls.keys() == {f"{key}{number}" for key in keys for number in range(LONG)}
    assert max(calls.values()) <= 2
    twice = [text for text, count in calls.items() if count == 2]
    assert {text[0] for text in twice} <= {"a"}
    assert len(twice) <= 10  # the current record, and those finished in the last second
    record("done_twice", len(twice))
    assert long.materialized() == set(keys)
    assert [long.texts(key) for key in keys] == [
        [f"{key}{number}".upper() for number in range(LONG)] for key in keys
    ]
