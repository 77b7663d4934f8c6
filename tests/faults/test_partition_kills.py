"""Runs that are killed while they decide, sort, group or join in partitions."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.execution.helpers import lines
from tests.faults.kill import Kill

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
run(OPERATORS[sys.argv[1]]())
"""
_COUNT = 4_000


def word(number: int) -> str:
    """Return a number in letters."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


class PartitionKill(Kill):
    code = _PARTS
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
        assert not [*self.folder.rglob("range-*"), *self.folder.rglob("decided-*")]
        stages = {task.partition("-")[0] for task in self.tasks()}
        last = "_Work" if self.option in {"sort", "group"} else "_Decide"
        assert stages >= {"_SplitInput" if last == "_Work" else "_SplitSketches", last}
        assert max(self.tasks().values()) <= 1 + self.kills

    def tasks(self) -> Counter[str]:
        """Return how often each task was begun."""
        return Counter(entry[1] for entry in self.script.log("tasks"))


@pytest.mark.slow
@pytest.mark.parametrize("option", PartitionKill.options)
def test_a_killed_run_goes_on_at_its_partitions(tmp_path: Path, option: str) -> None:
    PartitionKill(tmp_path, option).play()
