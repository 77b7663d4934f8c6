"""A real ``dagster dev`` over the slow pipeline, driven over GraphQL."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson
import psutil

T = TypeVar("T")
HERE = Path(__file__).parent
RECORDS = 600
LOCATION = "slow"
IN_PROCESS = {"execution": {"config": {"in_process": {}}}}
MULTIPROCESS = {"execution": {"config": {"multiprocess": {}}}}
FINISHED = {"SUCCESS", "FAILURE", "CANCELED"}

SETTINGS = """
telemetry: {enabled: false}
nux: {enabled: false}
run_coordinator: {module: dagster.core.run_coordinator, class: DefaultRunCoordinator}
"""
_WORKSPACE = f"""
load_from:
  - python_file: {{relative_path: slow_pipeline.py, location_name: {LOCATION}}}
"""
SOUND = """
from dagster_dataops import data_register


@data_register("data.slow", _concurrency_mode="single", _ignore_errors=False)
def fragile(record: dict) -> dict:
    return record | {"text": record["text"] + "!"}
"""
BUGGY = SOUND.replace("    return", '    assert record["id"] != 400\n    return')

_LAUNCH = """
mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }
"""
_REEXECUTE = """
mutation($params: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
_TERMINATE = """
mutation($run: String!) { terminateRun(runId: $run) { __typename } }
"""
_STATUS = "query($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"
_LOGS = """
query($run: ID!) { logsForRun(runId: $run) { ... on EventConnection { events {
  ... on MessageEvent { message }
  ... on ExecutionStepFailureEvent { error { message cause { message } } } } } } }
"""
_RELOAD = """
mutation($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) {
  __typename ... on WorkspaceLocationEntry { loadStatus locationOrLoadError { __typename } } } }
"""
_LOCATIONS = """
{ workspaceOrError { ... on Workspace { locationEntries {
  loadStatus locationOrLoadError { __typename ... on PythonError { message } } } } } }
"""


class Call(NamedTuple):
    """One call of an operator."""

    record: int
    process: int
    time: float


def until(wanted: Callable[[], T], what: str, seconds: float = 30.0, pause: float = 0.03) -> T:
    """Ask ``wanted`` until it gives something true, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := wanted()):
        assert time.monotonic() < deadline, f"after {seconds:g} s there was still no sign of {what}"
        time.sleep(pause)
    return found


class DagsterServer:
    """One ``dagster dev`` with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(parents=True)
        (home / "dagster.yaml").write_text(SETTINGS)
        (home / "workspace.yaml").write_text(_WORKSPACE)
        (home / "fragile.py").write_text(BUGGY)
        shutil.copy(HERE / "slow_pipeline.py", home)
        with (home / "texts.jsonl").open("wb") as file:
            file.writelines(orjson.dumps(row) + b"\n" for row in self.source())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.process = self._started()
        self._wait_until_loaded()

    @staticmethod
    def source() -> Iterator[dict[str, Any]]:
        return ({"id": number, "text": f"text {number}"} for number in range(RECORDS))

    def _started(self) -> "subprocess.Popen[bytes]":
        environment = os.environ | {
            "DAGSTER_HOME": str(self.home),
            "SLOW_PIPELINE_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(self.home)]),
        }
        command = [sys.executable, "-m", "dagster", "dev", "-w", str(self.home / "workspace.yaml")]
        with (self.home / "server.log").open("wb") as log:
            return subprocess.Popen(
                [*command, "-h", "127.0.0.1", "-p", self.url.rpartition(":")[2]],
                cwd=self.home,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _wait_until_loaded(self) -> None:
        def loaded() -> bool:
            assert self.process.poll() is None, (self.home / "server.log").read_text()
            try:
                entries = self.ask(_LOCATIONS)["workspaceOrError"]["locationEntries"]
            except OSError:
                return False
            found = [entry["locationOrLoadError"] or {} for entry in entries]
            assert not any(f.get("__typename") == "PythonError" for f in found), found
            return bool(found) and all(entry["loadStatus"] == "LOADED" for entry in entries)

        until(loaded, "the code location", 60.0, pause=0.2)

    def ask(self, query: str, **variables: Any) -> Any:
        """Send a GraphQL query and return its data."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/graphql", body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    # ------------------------------------------------------------ runs

    def launch(self, *key: str, config: dict[str, Any] | None = None) -> str:
        """Launch a run of one asset and return its id."""
        selector = {
            "repositoryLocationName": LOCATION,
            "repositoryName": "__repository__",
            "pipelineName": "__ASSET_JOB",
            "assetSelection": [{"path": list(key)}],
            "assetCheckSelection": [],
        }
        params = {"selector": selector, "runConfigData": config or IN_PROCESS, "mode": "default"}
        return self._launched(self.ask(_LAUNCH, params=params)["launchRun"])

    def reexecute(self, run: str) -> str:
        """Re-execute a run from its failure and return the new run's id."""
        params = {"parentRunId": run, "strategy": "FROM_FAILURE"}
        return self._launched(self.ask(_REEXECUTE, params=params)["launchRunReexecution"])

    @staticmethod
    def _launched(answer: dict[str, Any]) -> str:
        assert answer["__typename"] == "LaunchRunSuccess", answer
        run: str = answer["run"]["runId"]
        return run

    def terminate(self, run: str) -> None:
        self.ask(_TERMINATE, run=run)

    def reload(self) -> None:
        """Load the code location anew, as its reload button does."""
        answer = self.ask(_RELOAD, name=LOCATION)["reloadRepositoryLocation"]
        assert answer["locationOrLoadError"]["__typename"] == "RepositoryLocation", answer

    def status(self, run: str) -> str:
        status: str = self.ask(_STATUS, run=run)["runOrError"]["status"]
        return status

    def finish(self, run: str, wanted: str, seconds: float = 40.0) -> None:
        """Wait until ``run`` has ended, as ``wanted``."""
        until(lambda: self.status(run) in FINISHED, f"the end of run {run}", seconds, pause=0.1)
        assert self.status(run) == wanted, self.log(run)

    def log(self, run: str) -> str:
        """Every message of a run's log, errors with their causes."""
        lines: list[str] = []
        for event in self.ask(_LOGS, run=run)["logsForRun"]["events"]:
            lines.append(event.get("message", ""))
            error = event.get("error")
            while error:
                lines.append(error["message"])
                error = error.get("cause")
        return "\n".join(lines)

    # ------------------------------------------------------------ what operators leave

    def pace(self, node: str, seconds: float, first: int = 0) -> None:
        """Have the operator of ``node`` take so long a record, from record ``first`` on."""
        (self.home / f"{node}.pace").write_text(f"{seconds} {first}")

    def calls(self, node: str) -> list[Call]:
        path = self.home / f"{node}.calls"
        lines = path.read_text().splitlines() if path.exists() else []
        fields = [line.split() for line in lines]
        return [Call(int(record), int(pid), float(when)) for record, pid, when in fields]

    def wait_for_calls(self, node: str, count: int) -> list[Call]:
        until(lambda: len(self.calls(node)) >= count, f"{count} calls of {node}")
        return self.calls(node)

    def result(self, node: str, name: str = "shout") -> bytes:
        return (self.home / f"results/{node}/{name}/{name}_results.jsonl").read_bytes()

    def manifest(self, node: str, name: str = "shout") -> dict[str, Any]:
        path = self.home / f"results/{node}/{name}/{name}_results.jsonl.json"
        manifest: dict[str, Any] = orjson.loads(path.read_bytes())
        return manifest

    # ------------------------------------------------------------ the end

    def processes(self) -> list[psutil.Process]:
        """Every process that belongs to this server, however deep."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                alive = process.status() != psutil.STATUS_ZOMBIE
                if alive and process.environ().get("SLOW_PIPELINE_HOME") == str(self.home):
                    found.append(process)
        return found

    def stop(self) -> None:
        """Stop as Ctrl-C does; whatever is left then is killed."""
        self.process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        self.process.wait(5)
