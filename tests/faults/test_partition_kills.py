"""Runs that are killed while they decide, sort, group or join in partitions."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import config, load_result
from dagster_dataops.errors import ResultMissingError
from tests.execution.helpers import lines
from tests.faults.kill import Kill
from tests.object_stores import SECRETS, s3_server

_PARTS = """
from dagster_dataops.execution.runners import dataset_stages, selection_stages

def logged(call):
    def logging(task, record):
        log("tasks", f"{type(task).__name__}-{record['number']}")
        time.sleep(0.02)
        return call(task, record)
    return logging

for stages, names in (
    (selection_stages, ("_SplitSketches", "_Decide", "_MakeLines")),
    (dataset_stages, ("_SplitInput", "_Work")),
):
    stages.RANGE_BYTES = 20_000
    for name in names:
        task = getattr(stages, name)
        task.__call__ = logged(task.__call__)
selection_stages.LEAST_RECORDS = dataset_stages.LEAST_BYTES = 0

OPERATORS = {
    "exact": lambda: data.dedup.Exact("text", _max_workers=2),
    "lines": lambda: data.dedup.Lines("text", _max_workers=2),
    "sort": lambda: data.sample.Sort("key", _max_workers=2),
    "group": lambda: data.sample.GroupBy("key", _max_workers=2),
}
"""
_IN_A_FOLDER = "run(OPERATORS[sys.argv[1]]())"
_IN_A_BUCKET = """
from dagster_dataops import config
from dagster_dataops.execution.runners.stages import Stages

run_stage = Stages.run

def run_and_log(self, name, task, *arguments):  # workers are no copies of this process
    log("tasks", f"{type(task).__name__}-all")
    return run_stage(self, name, task, *arguments)

Stages.run = run_and_log
config.data_process_scratch = HOME / sys.argv[3]
config.data_process_path = sys.argv[2]
root = config.results_root()
context = RunContext(run="script", resume=ResumePolicy.AUTO, lock_seconds=10, flush_seconds=0)
dataset = JsonlDataset.of_file(HOME / "input.jsonl")
OperatorExecutor(context).run(OPERATORS[sys.argv[1]](), [dataset], NodeFolder.of(root / "node"))
"""
_COUNT = 4_000


def word(number: int) -> str:
    """Return a number in letters."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


class PartitionKill(Kill):
    code = _PARTS + _IN_A_FOLDER
    options = ("exact", "lines", "sort", "group")
    kills = 5
    wait = (0.0, 1.0)
    log = "tasks"

    def records(self) -> list[dict[str, Any]]:
        return [
            {"n": n, "key": n * 7 % 501, "text": f"{word(n * 31 % 3001)} " * 9}
            for n in range(_COUNT)
        ]

    def expected(self) -> object:
        if self.option in {"exact", "lines"}:
            first = {row["text"]: row for row in reversed(self.rows)}
            return lines(sorted(first.values(), key=lambda row: row["n"]))
        if self.option == "sort":
            return lines(sorted(self.rows, key=lambda row: row["key"]))
        groups: dict[int, Any] = {}
        for row in self.rows:
            groups.setdefault(row["key"], []).append(row)
        return lines({"key": key, "records": rows} for key, rows in groups.items())

    def check(self) -> None:
        assert self.published() == self.expected()

    def check_end(self) -> None:
        super().check_end()
        assert not [*self.home.rglob("range-*"), *self.home.rglob("decided-*")]
        stages = {task.partition("-")[0] for task in self.tasks()}
        last = "_Work" if self.option in {"sort", "group"} else "_Decide"
        assert stages >= {"_SplitInput" if last == "_Work" else "_SplitSketches", last}
        assert max(self.tasks().values()) <= 1 + self.kills

    @property
    def home(self) -> Path:
        """The folder of the machine of the last attempt."""
        return self.folder

    def tasks(self) -> Counter[str]:
        """Return how often each task was begun."""
        return Counter(entry[1] for entry in self.script.log("tasks"))


@pytest.mark.slow
@pytest.mark.parametrize("option", PartitionKill.options)
def test_a_killed_run_goes_on_at_its_partitions(tmp_path: Path, option: str) -> None:
    PartitionKill(tmp_path, option).play()


class BucketKill(PartitionKill):
    """Each attempt is on another of two machines, which share a bucket and the input alone."""

    code = _PARTS + _IN_A_BUCKET
    options = ("exact", "sort")
    wait = (0.0, 0.6)
    rounds = 0

    @property
    def root(self) -> str:
        return f"s3://results/{self.folder.name}/{self.rounds}"

    @property
    def home(self) -> Path:
        return self.folder / self.machine

    def arguments(self, *, last: bool) -> list[str]:
        self.machine = f"machine{(self.attempts + last) % 2}"
        return [self.option, self.root, self.machine]

    def published(self) -> bytes:
        config.data_process_scratch = self.folder / "reader"
        return load_result(f"{self.root}/node").path.read_bytes()

    def is_published(self) -> bool:
        try:
            return bool(self.published())
        except ResultMissingError:
            return False

    def begin_anew(self) -> None:
        super().begin_anew()
        self.rounds += 1


@pytest.mark.slow
@pytest.mark.parametrize("option", BucketKill.options)
def test_a_killed_run_with_a_bucket_alone_goes_on_elsewhere(
    tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    pytest.importorskip("moto.server", reason="moto is not installed")
    with s3_server() as address:
        for name, value in {**SECRETS, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        BucketKill(tmp_path, option).play()
