"""Operators that work in partitions of small inputs, and runs of them that end between stages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import data
from dagster_dataops.checkpoints.places.shipped_journal import ShippedJournal
from dagster_dataops.execution.runners import (
    dataset_stages,
    part_files,
    record_runner,
    selection_stages,
    stages,
)
from tests.execution.helpers import SpanSizes, cut_by, node, run, write_input
from tests.nodes import NodeFolder, ResumePolicy, background
from tests.object_stores import FakeStore, machine

_COUNT = 600
write_parts = part_files.write_parts
OPERATORS: dict[str, partial[Any]] = {
    "exact": partial(data.dedup.Exact, "text"),
    "parts": partial(data.dedup.Lines, "text"),
    "near": partial(data.dedup.NearDuplicate, "text", verify=True, keep="value"),
    "clusters": partial(data.dedup.NearDuplicate, "text", cluster_key="cluster"),
    "simhash": partial(data.dedup.SimHash, "text", linkage="component"),
    "top": partial(data.sample.TopK, "value", 2, group_key="key"),
    "sort": partial(data.sample.Sort, "key"),
    "group": partial(data.sample.GroupBy, "key"),
    "merge": partial(data.join.Merge, "key", duplicates="first", how="outer"),
}
NAMES = {
    "split": "range-*",
    "decide": "decided-*",
    "join": "joined-*",
    "work": "worked-*",
    "lines": "lines-*",
}


def _rows() -> list[dict[str, Any]]:
    return [
        {"n": n, "key": n * 7 % 401, "text": f"text {n * 31 % 997} " * 4, "value": n * 13 % 500}
        for n in range(_COUNT)
    ]


class _Killed(KeyboardInterrupt):
    """Ends a run between two stages."""


def replace_writer(patch: pytest.MonkeyPatch, write: Callable[[Path, Any], None]) -> None:
    """Let the stages write files of parts by a function."""
    for module in (selection_stages, dataset_stages):
        patch.setattr(module, "write_parts", write)


@contextmanager
def in_partitions() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_stages, "LEAST_RECORDS", 0)
        patch.setattr(dataset_stages, "LEAST_BYTES", 0)
        patch.setattr(stages, "_LEAST_RANGE", 1 << 12)
        patch.setattr(stages, "LEAST_SENT_BYTES", 0)
        for module in (selection_stages, dataset_stages):
            patch.setattr(module, "RANGE_BYTES", 8_000)
        yield patch


def stages_begun(patch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each stage when it begins."""
    names: list[str] = []
    run_stage = stages.Stages.run

    def run_and_note(self: Any, name: str, *arguments: Any) -> Any:
        names.append(name)
        return run_stage(self, name, *arguments)

    patch.setattr(stages.Stages, "run", run_and_note)
    return names


@contextmanager
def parts_in_form(number: int) -> Iterator[None]:
    """Let selections write their parts as those of another form."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection_stages, "_PARTS_FORM", number)
        yield


class PartitionedCase:
    """A run of an operator over an input, or two."""

    def __init__(self, folder: Path, name: str, store: FakeStore | None = None) -> None:
        self.folder, self.name, self.store = folder, name, store
        first = write_input(folder / "input.jsonl", _rows())
        others = [write_input(folder / "right.jsonl", _rows()[::-3])] if name == "merge" else []
        self.inputs = [first, *others]
        self.report: Any = None

    def place(self, where: str) -> NodeFolder:
        """Return the folder of the node in a folder of runs, or on a machine."""
        if self.store is None:
            return node(self.folder / where)
        return NodeFolder.of(machine(self.folder / where, self.store) / "node")

    def result(
        self, where: str, mode: str = "single", cluster: Any = None, **options: Any
    ) -> bytes:
        if self.name == "merge":
            options["max_memory_mb"] = 1
        operator = OPERATORS[self.name](_concurrency_mode=mode, **options)
        if self.name == "merge":
            operator._max_bytes = 20_000  # of which the right input is more than a half
        with pytest.MonkeyPatch.context() as patch:
            cut_by(patch, SpanSizes(0.0, 50, 4_000, 0.01))
            place = self.place(where)
            how = {"resume": ResumePolicy.AUTO, "flush_seconds": 0.0}
            self.report = run(operator, self.inputs, place, cluster=cluster, **how)
        return place.result.read_bytes()

    def kill_after(self, stage: str, mode: str = "single") -> list[Path]:
        """Run until a stage has ended; return its files."""
        run_stage = stages.Stages.run

        def run_and_die(self: Any, name: str, *arguments: Any) -> Any:
            returned = run_stage(self, name, *arguments)
            if name == stage:
                raise _Killed
            return returned

        with pytest.MonkeyPatch.context() as patch, pytest.raises(_Killed):
            patch.setattr(stages.Stages, "run", run_and_die)
            patch.setattr(record_runner, "synced_on_failure", nullcontext)  # as after SIGKILL
            patch.setattr(ShippedJournal, "least_seconds", 0.0)
            self.result("killed", mode)
        background.finish()
        return sorted(self.folder.rglob(NAMES[stage]))
