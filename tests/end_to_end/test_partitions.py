"""Backfills and sensors of partitioned pipelines, by the daemon of a real Dagster."""

import shutil
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.assets.helpers import read_jsonl, write_jsonl
from tests.end_to_end.dagster_server import FINISHED, HERE, SETTINGS, DagsterServer, until

pytestmark = pytest.mark.timeout(300)

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
        for name in ("letters", "inbox"):
            (home / name).mkdir(parents=True)
        (home / "dagster.yaml").write_text(SETTINGS)
        location = "{relative_path: partitioned_pipelines.py, location_name: partitioned}"
        (home / "workspace.yaml").write_text(f"load_from:\n  - python_file: {location}\n")
        shutil.copy(HERE / "partitioned_pipelines.py", home)
        for key in "abc":
            write_jsonl(home / "letters" / f"{key}.jsonl", [{"text": f"{key}{n}"} for n in "01"])
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
