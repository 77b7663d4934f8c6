"""A real ``dagster dev`` over the slow pipeline, controlled over GraphQL."""

import json
import math
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import orjson
import psutil

T = TypeVar("T")
HERE = Path(__file__).parent
RECORDS = 600
HANG_SECONDS = 1800  # seconds; only a hanging call takes longer, even on a busy machine
SLOW = "slow"
IN_PROCESS = {"execution": {"config": {"in_process": {}}}}
MULTIPROCESS = {"execution": {"config": {"multiprocess": {}}}}
_SERVICES = (
    {"dagster", "dev"},
    {"dagster_webserver"},
    {"dagster._daemon"},
    {"dagster", "code-server"},
    {"dagster", "api", "grpc"},
)
FINISHED = {"SUCCESS", "FAILURE", "CANCELED"}

COMMON = f"""
telemetry: {{enabled: false}}
nux: {{enabled: false}}
run_retries: {{enabled: true, max_retries: 0}}
code_servers: {{local_startup_timeout: {HANG_SECONDS}}}
"""
SETTINGS = f"""{COMMON}
run_coordinator: {{module: dagster.core.run_coordinator, class: DefaultRunCoordinator}}
"""
_PATIENT = {  # Dagster's usual limits, up to a minute, are too short for a busy machine
    "DAGSTER_GRPC_TIMEOUT_SECONDS": f"{HANG_SECONDS}",
    "DAGSTER_GRPC_SHUTDOWN_GRACE_PERIOD": "60",
    "DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS": "600",
    "DAGSTER_PROXY_SERVER_HEARTBEAT_TIMEOUT": "600",
}
_WORKSPACE = "load_from: [python_file: {{relative_path: served.py, location_name: {name}}}]"
_SERVED = """
import dagster as dg
import {modules}

defs = dg.Definitions.merge(*(module.defs for module in ({modules},)))
"""
_WARM = """
from warm_runs import start_warm

start_warm("served")
"""
_SITE = """
import gc

gc.set_threshold(100_000)  # a quarter of the time of an import is that of collections
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
_SELECT = """
mutation($params: ExecutionParams!) { launchPipelineReexecution(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }
"""
_REEXECUTE = """
mutation($params: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
_TERMINATE = """
mutation($run: String!, $policy: TerminateRunPolicy!) {
  terminateRun(runId: $run, terminatePolicy: $policy) { __typename } }
"""
_CHILDREN = """
query($tag: ExecutionTag!) { runsOrError(filter: {tags: [$tag]}) {
  ... on Runs { results { runId } } } }
"""
_STATUS = "query($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"
_LOGS = """
query($run: ID!) { logsForRun(runId: $run) { ... on EventConnection { events {
  ... on MessageEvent { message }
  ... on ExecutionStepFailureEvent { error { message cause { message } } } } } } }
"""
_MATERIALIZED = """
query($run: ID!) { logsForRun(runId: $run) { ... on EventConnection { events {
  ... on MaterializationEvent { assetKey { path } } } } } }
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


def until(wanted: Callable[[], T], what: str, pause: float = 0.1) -> T:
    """Call ``wanted`` until it returns a true value, and return that."""
    deadline = time.monotonic() + HANG_SECONDS
    while not (found := wanted()):
        late = f"after {HANG_SECONDS} s there was still no sign of {what}"
        assert time.monotonic() < deadline, late
        time.sleep(pause)
    return found


class DagsterServer:
    """A ``dagster dev`` with a separate home.

    Args:
        home: A new folder.
        settings: The content of the instance's ``dagster.yaml``.
        pipelines: Names of modules ``<name>_pipeline.py``. One code location, with the name of the
            first, serves all: each location costs two processes, and each of them seconds.
        folder: The folder of these files.
        environment: Variables that the server has.
        warm: Whether the server forks its runs from a process with all imports, see `warm_runs`.
    """

    def __init__(
        self,
        home: Path,
        settings: str = SETTINGS,
        pipelines: Sequence[str] = (SLOW,),
        folder: Path = HERE,
        environment: Mapping[str, str] = MappingProxyType({}),
        warm: bool = False,
    ) -> None:
        self.home = home
        self._environment = environment
        home.mkdir(parents=True)
        (home / "dagster.yaml").write_text(settings)
        self.location = pipelines[0]
        (home / "workspace.yaml").write_text(_WORKSPACE.format(name=self.location))
        modules = ", ".join(f"{name}_pipeline" for name in pipelines)
        served = _SERVED.format(modules=modules)
        (home / "served.py").write_text(served + _WARM if warm else served)
        (home / "sitecustomize.py").write_text(_SITE)
        (home / "fragile.py").write_text(BUGGY)
        for module in ("paced.py", "served_settings.py", "warm_runs.py"):
            shutil.copy(HERE / module, home)
        for name in pipelines:
            shutil.copy(folder / f"{name}_pipeline.py", home)
        with (home / "texts.jsonl").open("wb") as file:
            file.writelines(orjson.dumps(row) + b"\n" for row in self.source())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.start()

    def start(self) -> None:
        """Start the server, once more after it has ended, and wait until it serves."""
        self.process = self._started()
        self._wait_until_loaded()

    @staticmethod
    def source() -> Iterator[dict[str, Any]]:
        return ({"id": number, "text": f"text {number}"} for number in range(RECORDS))

    def _started(self) -> "subprocess.Popen[bytes]":
        before = os.environ.get("PYTHONPATH")
        path = [str(HERE.parents[1]), str(self.home), *([before] if before else [])]
        given = {
            "DAGSTER_HOME": str(self.home),
            "SLOW_PIPELINE_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(path),
        }
        command = [sys.executable, "-m", "dagster", "dev", "-w", str(self.home / "workspace.yaml")]
        with (self.home / "server.log").open("ab") as log:
            return subprocess.Popen(
                [*command, "-h", "127.0.0.1", "-p", self.url.rpartition(":")[2]],
                cwd=self.home,
                env=os.environ | _PATIENT | given | self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,  # for Ctrl-C, which all of a terminal's processes get
            )

    def _wait_until_loaded(self) -> None:
        def loaded() -> bool:
            assert self.process.poll() is None, (self.home / "server.log").read_text()
            return self.serves()

        until(loaded, "the code location", pause=0.2)

    def serves(self) -> bool:
        """Whether the code location is loaded."""
        try:
            entries = self.ask(_LOCATIONS)["workspaceOrError"]["locationEntries"]
        except OSError:
            return False
        found = [entry["locationOrLoadError"] or {} for entry in entries]
        errors = [f for f in found if f.get("__typename") == "PythonError"]
        assert not errors or "DagsterUserCodeUnreachableError" in str(errors), errors
        return not errors and bool(found) and all(e["loadStatus"] == "LOADED" for e in entries)

    def ask(self, query: str, **variables: Any) -> Any:
        """Send a GraphQL query and return its data."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/graphql", body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as response:  # noqa: S310
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    # ------------------------------------------------------------ runs

    def launch(self, *key: str, config: dict[str, Any] | None = None, **tags: str) -> str:
        """Launch a run of one asset, with tags of Dagster's own, and return its id."""
        return self.launch_assets(key, config=config, **tags)

    def launch_assets(
        self, *keys: tuple[str, ...], config: dict[str, Any] | None = None, **tags: str
    ) -> str:
        """Launch a run of some assets and return its id."""
        params = self._params(keys, config or IN_PROCESS)
        params["executionMetadata"] = {
            "tags": [{"key": f"dagster/{name}", "value": value} for name, value in tags.items()]
        }
        return self._launched(self.ask(_LAUNCH, params=params)["launchRun"])

    def _params(self, keys: tuple[tuple[str, ...], ...], config: dict[str, Any]) -> dict[str, Any]:
        selector = {
            "repositoryLocationName": self.location,
            "repositoryName": "__repository__",
            "pipelineName": "__ASSET_JOB",
            "assetSelection": [{"path": list(key)} for key in keys],
            "assetCheckSelection": [],
        }
        return {"selector": selector, "runConfigData": config, "mode": "default"}

    def reexecute(self, run: str, strategy: str = "FROM_FAILURE") -> str:
        """Re-execute a run and return the new run's id."""
        params = {"parentRunId": run, "strategy": strategy}
        return self._launched(self.ask(_REEXECUTE, params=params)["launchRunReexecution"])

    def reexecute_steps(self, run: str, *keys: tuple[str, ...], steps: list[str]) -> str:
        """Re-execute some steps of a run of some assets, as chosen on its page."""
        params = self._params(keys, IN_PROCESS)
        params["executionMetadata"] = {"parentRunId": run, "rootRunId": run, "tags": []}
        params["stepKeys"] = steps
        return self._launched(self.ask(_SELECT, params=params)["launchPipelineReexecution"])

    def retry_of(self, run: str) -> str:
        """Wait until Dagster has launched a retry of ``run``; return its id."""
        tag = {"key": "dagster/parent_run_id", "value": run}

        def found() -> list[dict[str, str]]:
            runs: list[dict[str, str]] = self.ask(_CHILDREN, tag=tag)["runsOrError"]["results"]
            return runs

        return until(found, f"a retry of run {run}", pause=0.5)[0]["runId"]

    @staticmethod
    def _launched(answer: dict[str, Any]) -> str:
        assert answer["__typename"] == "LaunchRunSuccess", answer
        run: str = answer["run"]["runId"]
        return run

    def terminate(self, run: str, *, force: bool = False) -> None:
        policy = "MARK_AS_CANCELED_IMMEDIATELY" if force else "SAFE_TERMINATE"
        self.ask(_TERMINATE, run=run, policy=policy)

    def reload(self) -> None:
        """Reload the code location, as its reload button does; twice if its server has ended."""

        def loaded() -> bool:
            answer = self.ask(_RELOAD, name=self.location)["reloadRepositoryLocation"]
            return bool(answer["locationOrLoadError"]["__typename"] == "RepositoryLocation")

        until(loaded, "the code location", pause=0.5)

    def status(self, run: str) -> str:
        status: str = self.ask(_STATUS, run=run)["runOrError"]["status"]
        return status

    def _has_ended(self, run: str) -> bool:
        with suppress(OSError, sqlite3.Error):  # the server's database may be away
            return (self._status_on_disk(run) or self.status(run)) in FINISHED
        return False

    def _status_on_disk(self, run: str) -> str:
        """Return the status in Dagster's file, in a hundredth of a query's time; "" without it."""
        path = self.home / "history" / "runs.db"
        if not path.exists():
            return ""
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as runs:
            found = runs.execute("select status from runs where run_id = ?", [run]).fetchone()
        return str(found[0]) if found else ""

    def finish(self, run: str, wanted: str) -> None:
        """Wait until ``run`` has ended with the status ``wanted``."""
        until(lambda: self._has_ended(run), f"the end of run {run}", pause=0.5)
        assert self.status(run) == wanted, self.log(run)

    def materialized(self, run: str) -> list[str]:
        """Return the names of the assets that a run has materialized, in order; not the source."""
        events = self.ask(_MATERIALIZED, run=run)["logsForRun"]["events"]
        names = [event["assetKey"]["path"][-1] for event in events if event.get("assetKey")]
        return [name for name in names if name != "texts"]

    def log(self, run: str) -> str:
        """Return every message of a run's log, errors with their causes."""
        lines: list[str] = []
        for event in self.ask(_LOGS, run=run)["logsForRun"]["events"]:
            lines.append(event.get("message", ""))
            error = event.get("error")
            while error:
                lines.append(error["message"])
                error = error.get("cause")
        return "\n".join(lines)

    # ------------------------------------------------------------ files of operators

    def pace(self, node: str, seconds: float, first: int = 0, held: float = math.inf) -> None:
        """Set the speed of the operator of ``node``.

        Args:
            node: The node.
            seconds: The seconds per record.
            first: The first record that takes so long.
            held: The first record that is held until a later pace lets it pass.
        """
        draft = self.home / f"{node}.draft"
        draft.write_text(f"{seconds} {first} {held}")
        draft.replace(self.home / f"{node}.pace")  # read at every call

    def calls(self, node: str) -> list[Call]:
        fields = [line.split() for line in self._calls_of(node).splitlines()]
        return [Call(int(record), int(pid), float(when)) for record, pid, when in fields]

    def _calls_of(self, node: str) -> str:
        path = self.home / f"{node}.calls"
        return path.read_text() if path.exists() else ""

    def wait_for_calls(self, node: str, count: int) -> list[Call]:
        until(lambda: self._calls_of(node).count("\n") >= count, f"{count} calls of {node}")
        return self.calls(node)

    def result(self, node: str, name: str = "shout") -> bytes:
        return (self.home / f"results/{node}/{name}/{name}_results.jsonl").read_bytes()

    def manifest(self, node: str, name: str = "shout") -> dict[str, Any]:
        path = self.home / f"results/{node}/{name}/{name}_results.jsonl.json"
        manifest: dict[str, Any] = orjson.loads(path.read_bytes())
        return manifest

    # ------------------------------------------------------------ the end

    def processes(self) -> list[psutil.Process]:
        """Return every process that belongs to this server, at any depth."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                alive = process.status() != psutil.STATUS_ZOMBIE
                if alive and process.environ().get("SLOW_PIPELINE_HOME") == str(self.home):
                    found.append(process)
        return found

    def services(self) -> list[psutil.Process]:
        """Return the processes of only the server: neither runs nor their children."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if any(words <= set(process.cmdline()) for words in _SERVICES):
                    found.append(process)
        return found

    def kill(self) -> None:
        """Kill the server with its processes, except its runs."""
        _kill(self.services())
        self.process.wait(HANG_SECONDS)

    def kill_everything(self) -> None:
        """Kill the server and its runs at the same moment, as a power cut does."""
        _kill(self.processes())
        self.process.wait(HANG_SECONDS)

    def interrupt(self) -> None:
        """Press Ctrl-C in the server's terminal, and wait until all processes have ended."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(HANG_SECONDS)
        until(lambda: not self.processes(), f"the end of {self.processes()}", pause=0.5)

    def stop(self) -> None:
        """Kill all processes: `interrupt` stops the server as a user does."""
        self.kill_everything()


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
