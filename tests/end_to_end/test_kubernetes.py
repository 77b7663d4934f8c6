"""Test that the executor of Kubernetes replaces the lost pod of a step, and that it resumes.

There is no cluster: a stand-in for its API starts the containers of jobs as processes of this
machine. All else is Dagster's: the executor, the jobs that it makes, the command of a step.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.end_to_end.dagster_server import until

if find_spec("dagster_k8s") is None:  # an import takes as long as a test
    pytest.skip("there is no dagster-k8s (pip install it)", allow_module_level=True)

ROOT = Path(__file__).parents[2]
RECORDS = 300
LOCATION = """
import os, time
from pathlib import Path

import dagster as dg
from dagster_k8s import k8s_job_executor

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline

HERE = Path(__file__).parent


@data_register("data.k8s", _concurrency_mode="single")
def work(record):
    if record["n"] >= 200 and not (HERE / "go").exists():
        time.sleep(0.2)
    return record | {"square": record["n"] ** 2}


@data_register("data.k8s", _concurrency_mode="single")
def end(record):
    return record


with pipeline("docs") as ppl:
    ppl.worked = work()
    ppl.ended = end()


def job():
    return build_definitions(
        ppl,
        source=HERE / "docs.jsonl",
        resource=DataOpsResource(root=str(HERE / "results")),
        executor=k8s_job_executor.configured({"max_concurrent": 2}, name="kubernetes"),
        op_tags={
            "worked": {
                "dagster-k8s/config": {
                    "container_config": {"resources": {"limits": {"nvidia.com/gpu": 1}}}
                }
            }
        },
        retry_policy=dg.RetryPolicy(max_retries=2),
    ).resolve_job_def("docs_pipeline")
"""
# The API of a cluster, in the process of the run.
CLUSTER = """
import json, os, sys
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import kubernetes
from dagster_k8s.client import DagsterKubernetesClient

import location
from tests.faults.warm_starts import WarmInterpreter
from tests.warm_python import DAGSTER


class Cluster:
    started = {}
    interpreter = WarmInterpreter(["dagster._cli", "dagster_k8s", *DAGSTER], os.environ)

    def create_namespaced_job_with_retries(self, body, namespace):
        made = kubernetes.client.ApiClient().sanitize_for_serialization(body)
        name = made["metadata"]["name"]
        (container,) = made["spec"]["template"]["spec"]["containers"]
        home = Path("pods", name)
        home.mkdir(parents=True)
        (home / "container.json").write_text(json.dumps(container))
        given = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        given |= {"DAGSTER_HOME": os.environ["DAGSTER_HOME"], "HOSTNAME": name}
        command = ["-m", *container["args"]]
        environment = os.environ | given
        with (home / "log").open("w") as log:
            started = self.interpreter.start(
                command, log.fileno(), folder=home, environment=environment
            )
        (home / "pid").write_text(str(started.pid))
        self.started[name] = started

    def get_job_status(self, job_name, namespace, **_):
        code = self.started[job_name].poll()
        return SimpleNamespace(failed=int(code not in (None, 0)), active=int(code is None))

    def delete_job(self, job_name, namespace):
        self.started[job_name].terminate()


kubernetes.config.load_incluster_config = lambda *_, **__: None
cluster = Cluster()
DagsterKubernetesClient.production_client = staticmethod(lambda *_, **__: cluster)
with dg.DagsterInstance.get() as instance:
    with dg.execute_job(dg.reconstructable(location.job), instance) as found:
        for event in found.all_events:
            if event.is_step_materialization and event.asset_key.path[-1] == "worked":
                made = event.step_materialization_data.materialization.metadata
                print("resumed", made["dagster_dataops/rows_resumed"].value)
            if event.is_step_up_for_retry:
                print("tried again", event.step_key)
        sys.exit(0 if found.success else 1)
"""
INSTANCE = """
telemetry: {enabled: false}
run_launcher:
  module: dagster_k8s
  class: K8sRunLauncher
  config:
    service_account_name: dagster
    instance_config_map: dagster-instance
    dagster_home: /opt/dagster
    job_image: "registry.example.com/docs-pipeline:1.0"
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text(INSTANCE)
    (tmp_path / "location.py").write_text(LOCATION)
    (tmp_path / "cluster.py").write_text(CLUSTER)
    lines = [json.dumps({"n": number}) + "\n" for number in range(RECORDS)]
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    given = os.environ | {"DAGSTER_HOME": str(tmp_path / "home"), "PYTHONPATH": paths}
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "cluster.py"],
            cwd=tmp_path,
            env=given,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as run,
    ):
        yield run
        run.kill()  # with the interpreter that forks pods
        for file in tmp_path.glob("pods/*/pid"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)


def test_the_pod_of_a_step_is_lost_and_the_next_one_resumes(
    started: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    def settled() -> bool:
        found = (tmp_path / "results").rglob("worked/checkpoints/*/segment*")
        return started.poll() is not None or any(path.stat().st_size > 0 for path in found)

    until(settled, "settled records")
    assert started.poll() is None, (tmp_path / "log").read_text()
    (first,) = (tmp_path / "pods").iterdir()
    os.kill(int((first / "pid").read_text()), signal.SIGKILL)
    (tmp_path / "go").touch()

    output, _ = started.communicate(timeout=600)

    assert started.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    assert "tried again docs__worked" in output
    assert 0 < int(output.split("resumed ")[1].split()[0]) < RECORDS
    containers = [
        json.loads((pod / "container.json").read_text())["resources"].get("limits", {})
        for pod in sorted((tmp_path / "pods").iterdir(), key=lambda pod: pod.stat().st_mtime)
    ]
    assert [one.get("nvidia.com/gpu") for one in containers] == ["1", "1", None]
    result = (tmp_path / "results/docs/ended/ended_results.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in result] == [
        {"n": number, "square": number**2} for number in range(RECORDS)
    ]
