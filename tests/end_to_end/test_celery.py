"""Tests of `examples/celery`: partitions that workers of Celery process, with a real Redis."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import psutil
import pytest

from tests.end_to_end.dagster_server import until
from tests.faults.warm_starts import StartedProcess, warm_interpreter

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "celery" / "definitions.py"
RECORDS = 300


def _missing() -> str:
    """Return the missing part; empty if nothing is missing."""
    if shutil.which("redis-server") is None:
        return "there is no Redis (Debian: apt-get install redis-server)"
    for package in ("dagster_celery", "redis"):
        if importlib.util.find_spec(package) is None:
            return f"there is no {package} (pip install 'dagster-dataops[test]')"
    return ""


pytestmark = [pytest.mark.skipif(bool(_missing()), reason=_missing()), pytest.mark.timeout(1200)]


WARM = (
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.worker",
    "dagster._cli",
    "dagster_celery.app",
    "dagster_celery.tasks",
    "dagster_dataops.assets.preload",
    "kombu.transport.redis",
)


class Machines:
    """Redis, and workers of Celery with one process each.

    Args:
        folder: A new folder with a short path.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for shard in range(4):
            texts = [f"text {shard} {n}" for n in range(RECORDS)]
            lines = [json.dumps({"text": text, "after": "go"}) + "\n" for text in texts]
            (folder / f"s{shard}.jsonl").write_text("".join(lines))
        (folder / "home").mkdir()
        (folder / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        self._broker = f"redis+socket://{folder}/redis"
        # Two workers at once would both create the tables of the instance.
        with dg.DagsterInstance.from_config(str(folder / "home")) as instance:
            instance.get_run_records(limit=1)
        redis = ("redis-server", "--port", "0", "--unixsocket", "redis", "--save", "")
        self._started: list[subprocess.Popen[bytes] | StartedProcess] = [
            subprocess.Popen(redis, cwd=folder, stdout=subprocess.DEVNULL)
        ]
        until((folder / "redis").exists, "Redis")
        self.workers = [self._worker(name) for name in ("one", "two")]

    def _worker(self, name: str) -> StartedProcess:
        broker = ("-b", self._broker, "--result-backend", self._broker)
        options = ("-l", "INFO", "-Q", "dagster", "-c", "1", "-n", f"{name}@%h")
        app = ("-m", "celery", "-A", "dagster_celery.app", *broker)
        started = self._start(*app, "worker", "--disable-prefetch", *options, log=name)
        self._started.append(started)
        until(lambda: "ready." in (self.folder / name).read_text(), f"worker {name}", pause=0.2)
        return started

    def _start(self, *command: str, log: str) -> StartedProcess:
        """Start a process of Python, forked from one that has imported Dagster and Celery."""
        with (self.folder / log).open("wb") as output:
            return warm_interpreter(*WARM).start(
                command, output.fileno(), folder=self.folder, environment=self._environment()
            )

    def _environment(self) -> dict[str, str]:
        given = {k: v for k, v in os.environ.items() if not k.startswith("DATAOPS_")}
        return given | {
            "BROKER": self._broker,
            "DAGSTER_HOME": str(self.folder / "home"),
            "PYTHONPATH": str(ROOT),
            "SHARDS_FOLDER": str(self.folder),
        }

    def run(self, shard: str) -> StartedProcess:
        """Start a run of one partition."""
        tags = json.dumps({"dagster/partition": shard})
        job = ("job", "execute", "-f", str(EXAMPLE), "-j", "shards_pipeline", "--tags", tags)
        started = self._start("-m", "dagster", *job, log=f"run_{shard}")
        self._started.append(started)
        return started

    def release(self) -> None:
        """Let the workers process records at full speed; until then each takes a second."""
        (self.folder / "go").touch()

    def result(self, shard: str) -> list[str]:
        """Return the texts of the result of a partition."""
        (path,) = self.folder.glob(f"results/**/{shard}/shouted_results.jsonl")
        return [json.loads(line)["text"] for line in path.read_bytes().splitlines()]

    def received(self, worker: str) -> bool:
        """Return whether a worker has received a step."""
        return "received" in (self.folder / worker).read_text()

    def settled(self) -> list[Path]:
        """Return the files with settled records of unfinished results."""
        found = self.folder.glob("results/**/checkpoints/*/segment*")
        return [path for path in found if path.stat().st_size > 0]

    def stop(self) -> None:
        """End everything."""
        for started in self._started:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(started.pid).children(recursive=True):
                    child.kill()
            started.kill()
            started.wait(60)


@pytest.fixture
def machines() -> Iterator[Machines]:
    folder = Path(tempfile.mkdtemp(prefix="celery-"))
    started = Machines(folder)
    try:
        yield started
    finally:
        started.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_two_workers_process_two_partitions_at_once_and_a_killed_one_resumes(
    machines: Machines,
) -> None:
    expected = {shard: [f"TEXT {shard[1]} {n}" for n in range(RECORDS)] for shard in ("s0", "s1")}
    runs = {shard: machines.run(shard) for shard in expected}
    until(lambda: len(machines.settled()) == 2, "settled records of both partitions")
    (killed,) = psutil.Process(machines.workers[0].pid).children()
    killed.send_signal(signal.SIGKILL)
    for child in _descendants(killed):
        child.kill()
    machines.release()

    codes = {shard: run.wait(600) for shard, run in runs.items()}

    (failed,) = (shard for shard, code in codes.items() if code != 0)
    (finished,) = expected.keys() - {failed}
    assert machines.result(finished) == expected[finished]
    assert machines.run(failed).wait(600) == 0
    assert machines.result(failed) == expected[failed]
    said = "".join((machines.folder / name).read_text() for name in ("one", "two"))
    assert "resuming: " in said


def test_a_lost_machine_leaves_its_run_waiting_and_the_next_run_resumes(
    machines: Machines,
) -> None:
    expected = [f"TEXT 0 {n}" for n in range(RECORDS)]
    waiting = machines.run("s0")
    until(lambda: len(machines.settled()) == 1, "settled records")
    (number,) = (n for n, name in enumerate(("one", "two")) if machines.received(name))
    lost = psutil.Process(machines.workers[number].pid)
    for process in [lost, *lost.children(recursive=True)]:
        process.send_signal(signal.SIGKILL)
    machines.release()

    assert machines.run("s1").wait(600) == 0  # the other machine goes on
    assert waiting.poll() is None  # Celery does not tell Dagster that a machine is gone
    waiting.kill()
    waiting.wait(60)

    assert machines.run("s0").wait(600) == 0
    assert machines.result("s0") == expected
    assert "resuming: " in (machines.folder / ("two", "one")[number]).read_text()


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
