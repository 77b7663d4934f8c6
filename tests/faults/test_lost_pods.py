"""Test that a step of a lost pod is continued by a pod of another host, which waits for nothing.

The pods share the root of the results and the instance, and nothing else: host name, process ids,
working folder and scratch folder are those of each pod.
"""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.crashing import wait_until
from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.object_stores import SECRETS, s3_server
from tests.subprocesses import killed_at_exit
from tests.warm_python import DAGSTER

RECORDS = 400
POD = """
import os, socket, sys, time

system, _, *rest = os.uname()
os.uname = lambda: os.uname_result((system, os.environ["HOST"], *rest))
socket.gethostname = lambda: os.environ["HOST"]

import dagster as dg

from dagster_dataops import DataOpsResource, build_definitions, data_register, pipeline


@data_register("data.pods", _concurrency_mode=os.environ["MODE"], _max_workers=2)
def work(record):
    if record["n"] >= 200 and "SLOW" in os.environ:
        time.sleep(0.1)
    return record | {"square": record["n"] ** 2}


with pipeline("docs") as ppl:
    ppl.worked = work()

defs = build_definitions(
    ppl, source=os.environ["SOURCE"], resource=DataOpsResource(root=os.environ["ROOT"])
)
with dg.DagsterInstance.get() as instance:
    run = defs.resolve_job_def("docs_pipeline").execute_in_process(instance=instance)
made = run.get_asset_materialization_events()
(event,) = (one for one in made if one.asset_key.path[-1] == "worked")
shown = event.step_materialization_data.materialization.metadata
print("resumed", shown["dagster_dataops/rows_resumed"].value)
"""


class Cluster:
    """Pods of one deployment, over one root."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self.root = folder, root
        (folder / "home").mkdir()
        (folder / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        (folder / "pod.py").write_text(POD)
        lines = [json.dumps({"n": number}) + "\n" for number in range(RECORDS)]
        (folder / "docs.jsonl").write_text("".join(lines))

    def pod(self, host: str, mode: str, **environment: str) -> StartedProcess:
        """Start a pod that materializes the pipeline."""
        place = self.folder / host
        place.mkdir()
        given = os.environ | {
            "DAGSTER_HOME": str(self.folder / "home"),
            "DATAOPS_DATA_PROCESS_SCRATCH": str(place / "scratch"),
            "HOST": host,
            "MODE": mode,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "ROOT": self.root,
            "SOURCE": str(self.folder / "docs.jsonl"),
        }
        with (place / "log").open("w") as log:
            return warm_interpreter(*DAGSTER).start(
                [str(self.folder / "pod.py")],
                log.fileno(),
                folder=place,
                environment=given | environment,
            )

    def settled(self, host: str) -> bool:
        """Return whether a pod has settled records that its root holds."""
        place = self.folder / (host if "://" in self.root else "results")
        return any(file.stat().st_size > 0 for file in place.rglob("checkpoints/*/journal"))


def lost(cluster: Cluster, mode: str) -> None:
    """Start a pod, and kill all its processes at once in the middle of its work."""
    pod = cluster.pod("pod-1", mode, SLOW="1")
    with killed_at_exit(pod):
        wait_until(
            lambda: cluster.settled("pod-1") or pod.poll() is not None, 300, "settled records"
        )
        time.sleep(1.5)  # an object store gets them twice a second
        assert pod.poll() is None, (cluster.folder / "pod-1" / "log").read_text()
        os.killpg(pod.pid, signal.SIGKILL)


def check_continued(cluster: Cluster, mode: str) -> None:
    """Check that another pod continues, at once, and that nobody is named as a holder."""
    with killed_at_exit(cluster.pod("pod-2", mode)) as pod:
        status = pod.wait(600)
    said = (cluster.folder / "pod-2" / "log").read_text()
    assert status == 0, said
    (resumed,) = map(int, re.findall(r"^resumed (\d+)$", said, re.MULTILINE))
    assert 0 < resumed < RECORDS
    assert f"resuming: {resumed:,} records settled by run" in said
    assert "waited" not in said


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "process"])
def test_another_host_continues_over_a_shared_volume(tmp_path: Path, mode: str) -> None:
    cluster = Cluster(tmp_path, str(tmp_path / "results"))
    lost(cluster, mode)
    (lock,) = (tmp_path / "results").rglob("worked/.lock")
    holder = json.loads(lock.read_bytes())
    assert holder["host"] == "pod-1"
    # Even where the process id belongs to another program now, as in each new container.
    lock.write_bytes(
        lock.read_bytes().replace(str(holder["pid"]).encode(), str(os.getpid()).encode())
    )

    check_continued(cluster, mode)

    result = (tmp_path / "results/docs/worked/worked_results.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in result] == [
        {"n": number, "square": number**2} for number in range(RECORDS)
    ]


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with s3_server() as found:
        for name, value in {**SECRETS, "AWS_ENDPOINT_URL": found}.items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.mark.slow
def test_another_host_without_a_volume_continues_over_a_bucket(
    tmp_path: Path, address: str
) -> None:
    from dagster_dataops import config, load_result

    cluster = Cluster(tmp_path, f"s3://results/{tmp_path.name}")
    lost(cluster, "single")
    check_continued(cluster, "single")
    with config.temporary(data_process_scratch=tmp_path / "reader"):
        found = load_result(f"s3://results/{tmp_path.name}/docs/worked")
        assert found.read() == [{"n": number, "square": number**2} for number in range(RECORDS)]
