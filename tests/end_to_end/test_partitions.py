"""Backfills and sensors of partitioned pipelines, by the daemon of a real Dagster."""

import os
import shutil
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.assets.helpers import read_jsonl, write_jsonl
from tests.end_to_end.dagster_server import FINISHED, HERE, SETTINGS, DagsterServer, until

pytestmark = pytest.mark.timeout(300)

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
_PARTITIONS = """
query($path: [String!]!) { assetNodeOrError(assetKey: {path: $path}) { ... on AssetNode {
  assetPartitionStatuses { ... on DefaultPartitionStatuses { materializedPartitions } } } } }
"""


class PartitionedServer(DagsterServer):
    """The server over the partitioned pipelines instead of the slow one."""

    def __init__(self, home: Path) -> None:
        self.home = home
        for name in ("letters", "inbox", "long"):
            (home / name).mkdir(parents=True)
        (home / "dagster.yaml").write_text(SETTINGS)
        location = "{relative_path: partitioned_pipelines.py, location_name: partitioned}"
        (home / "workspace.yaml").write_text(f"load_from:\n  - python_file: {location}\n")
        shutil.copy(HERE / "partitioned_pipelines.py", home)
        for key in "abc":
            write_jsonl(home / "letters" / f"{key}.jsonl", [{"text": f"{key}{n}"} for n in "01"])
            rows = [{"text": f"{key}{n}"} for n in range(LONG)]
            write_jsonl(home / "long" / f"{key}.jsonl", rows)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.process = self._started()
        self._wait_until_loaded()

    def backfill(self, asset: list[str], keys: list[str]) -> str:
        params = {"assetSelection": [{"path": asset}], "partitionNames": keys}
        answer = self.ask(_BACKFILL, params=params)["launchPartitionBackfill"]
        assert answer["__typename"] == "LaunchBackfillSuccess", answer
        found: str = answer["backfillId"]
        return found

    def runs(self, tag: str, value: str) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = self.ask(_RUNS, key=tag, value=value)["runsOrError"]["results"]
        return runs

    def runs_of(self, backfill: str) -> list[dict[str, Any]]:
        """The runs of a backfill, when all of them have ended."""

        def ended() -> list[dict[str, Any]]:
            runs = self.runs("dagster/backfill", backfill)
            return runs if all(run["status"] in FINISHED for run in runs) else []

        return until(ended, "the end of the backfill", 120.0, pause=0.5)

    def materialized(self, *asset: str) -> set[str]:
        answer = self.ask(_PARTITIONS, path=list(asset))["assetNodeOrError"]
        return set(answer["assetPartitionStatuses"]["materializedPartitions"])

    def calls_of(self, name: str) -> list[tuple[str, int]]:
        """The text of every call of a slow node, and the process of the step."""
        path = self.home / f"{name}.calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(text, int(process)) for text, process in map(str.split, lines)]

    def called(self) -> Counter[str]:
        path = self.home / "calls"
        return Counter(path.read_text().split() if path.exists() else [])

    def texts(self, name: str, partition: str) -> list[str]:
        path = self.home / "results" / name / "upper" / "partitions" / partition
        return [row["text"] for row in read_jsonl(path / "upper_results.jsonl")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartitionedServer]:
    made = PartitionedServer(tmp_path_factory.mktemp("partitioned") / "home")
    try:
        yield made
    finally:
        made.stop()


def test_a_backfill_is_one_run_and_the_next_one_makes_what_had_failed(
    server: PartitionedServer,
) -> None:
    (server.home / "failing").write_text("a1")
    asset = ["letters", "upper"]
    (run,) = server.runs_of(server.backfill(asset, ["c", "a", "b"]))
    assert run["status"] == "FAILURE"
    assert "1 of 3 partitions failed: a (RecordError" in server.log(run["runId"])
    assert server.materialized(*asset) == {"b", "c"}

    (server.home / "failing").unlink()
    (run,) = server.runs_of(server.backfill(asset, ["a"]))
    assert run["status"] == "SUCCESS", server.log(run["runId"])
    assert server.materialized(*asset) == {"a", "b", "c"}
    assert server.texts("letters", "a") == ["A0", "A1"]
    calls = Counter({"c0": 1, "c1": 1, "a0": 1, "a1": 2, "b0": 1, "b1": 1})
    assert server.called() & Counter(dict.fromkeys(calls, 9)) == calls


def test_the_sensor_launches_one_run_for_each_file_over_several_ticks(
    server: PartitionedServer,
) -> None:
    names = [f"file {number}" for number in range(5)]
    for name in names:
        write_jsonl(server.home / "inbox" / f".{name}.jsonl", [{"text": name}])
        (server.home / "inbox" / f".{name}.jsonl").rename(server.home / f"inbox/{name}.jsonl")

    def finished() -> list[dict[str, Any]]:
        runs = server.runs("dagster/sensor_name", "inbox_files_new_files")
        done = [run for run in runs if run["status"] in FINISHED]
        return done if len(done) >= len(names) else []

    runs = until(finished, "a run of every file", 120.0, pause=0.5)
    tags = [{tag["key"]: tag["value"] for tag in run["tags"]} for run in runs]
    assert sorted(tag["dagster/partition"] for tag in tags) == names
    assert {run["status"] for run in runs} == {"SUCCESS"}
    assert [server.texts("inbox", name) for name in names] == [[name.upper()] for name in names]
    assert server.materialized("inbox", "inbox") == set(names)


@pytest.mark.parametrize("name", ["relaunched", "reexecuted"])
def test_a_killed_run_of_several_partitions_goes_on_in_the_middle_of_one(
    server: PartitionedServer, name: str
) -> None:
    (server.home / "slow").touch()
    asset, keys = [name, "upper"], ["c", "a", "b"]
    backfill = server.backfill(asset, keys)
    until(lambda: len(server.calls_of(name)) > LONG + LONG // 2, "the middle of the second one")
    before = server.calls_of(name)
    os.kill(before[-1][1], signal.SIGKILL)
    (killed,) = server.runs_of(backfill)
    assert killed["status"] == "FAILURE"
    assert server.materialized(*asset) == set()

    (server.home / "slow").unlink()
    if name == "relaunched":
        (run,) = server.runs_of(server.backfill(asset, keys))
        again = run["runId"]
    else:
        again = server.reexecute(killed["runId"])
    server.finish(again, "SUCCESS")

    log = server.log(again)
    assert f"already finished by run {killed['runId']}: {LONG} records" in log
    assert f" records settled by run {killed['runId']}" in log
    calls = Counter(text for text, _ in server.calls_of(name))
    assert calls.keys() == {f"{key}{n}" for key in keys for n in range(LONG)}
    assert max(calls.values()) <= 2
    twice = [text for text, count in calls.items() if count == 2]
    assert {text[0] for text in twice} <= {"a"}
    assert len(twice) <= 10  # the one in the works, and what was finished in the last second
    assert server.materialized(*asset) == set(keys)
    assert [server.texts(name, key) for key in keys] == [
        [f"{key}{n}".upper() for n in range(LONG)] for key in keys
    ]
