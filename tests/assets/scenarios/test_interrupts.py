"""Tests of cancelled runs in every mode: finished records are kept, and the next run resumes."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from tests.assets.helpers import (
    definitions_of,
    execute,
    metadata_of,
    numbered,
    pipeline_of,
    result_of,
)
from tests.registries import OperatorRegistry

CANCELLED_AT = 60
RECORDS = 100
PACE = 0.01  # seconds per record: with less, a worker process may be far ahead of the others
EXPECTED = [{**record, "done": True} for record in numbered(RECORDS)]


class Cancelling:
    """Cancels the run from inside at one record, once; counts calls in a file."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def called(self, record: dict[str, Any]) -> bool:
        """Record a call; return whether it is the one in which the run is cancelled."""
        with (self.home / "calls").open("a") as file:
            file.write(f"{record['id']}\n")
        once = self.home / "cancelled"
        if record["id"] != CANCELLED_AT or once.exists():
            return False
        once.touch()
        os.kill(int((self.home / "pid").read_text()), signal.SIGINT)
        return True

    @property
    def at(self) -> float:
        """The time at which the run was cancelled."""
        return (self.home / "cancelled").stat().st_mtime

    def calls(self) -> Counter[str]:
        return Counter((self.home / "calls").read_text().split())


@pytest.fixture
def cancelling(tmp_path: Path) -> Cancelling:
    (tmp_path / "pid").write_text(str(os.getpid()))
    return Cancelling(tmp_path)


def operator(registry: OperatorRegistry, cancelling: Cancelling, mode: Any) -> Any:
    if mode == "async":

        @registry("data.text", _max_workers=4, _drain_seconds=0)
        async def waiting(record: dict) -> dict:
            await asyncio.sleep(30 if cancelling.called(record) else PACE)
            return record | {"done": True}

        return waiting()

    @registry("data.text", _concurrency_mode=mode, _max_workers=4, _drain_seconds=0)
    def working(record: dict) -> dict:
        time.sleep(30 if cancelling.called(record) else PACE)
        return record | {"done": True}

    return working()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "async", "process"])
def test_a_cancelled_run_keeps_finished_records_and_the_next_run_resumes(
    mode: str,
    registry: OperatorRegistry,
    cancelling: Cancelling,
    records: Callable[[int], Path],
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    ppl = pipeline_of(node=operator(registry, cancelling, mode))
    definitions = definitions_of(ppl, records(RECORDS), root)
    with pytest.raises(dg.DagsterExecutionInterruptedError):
        execute(definitions, instance)
    assert time.time() - cancelling.at < 5
    assert not (root / "docs/node/node_results.jsonl").exists()
    begun = cancelling.calls().total()  # workers are not all at the same place of the input

    result = execute(definitions, instance)
    assert result_of(root, "docs", "node") == EXPECTED
    calls = cancelling.calls()
    resumed = metadata_of(result, "docs", "node")["rows_resumed"]
    assert resumed >= begun - 16
    assert calls.total() - RECORDS <= 20
    assert calls[str(CANCELLED_AT)] == 2


def test_a_dataset_operator_can_be_cancelled_and_starts_again(
    registry: OperatorRegistry,
    cancelling: Cancelling,
    records: Callable[[int], Path],
    root: Path,
    instance: dg.DagsterInstance,
) -> None:
    @registry("data.text", rewrite_func="forward_batch_input")
    def whole(texts: list[dict]) -> list[dict]:
        for record in texts:
            if cancelling.called(record):
                time.sleep(30)
        return [record | {"done": True} for record in texts]

    definitions = definitions_of(pipeline_of(node=whole()), records(RECORDS), root)
    with pytest.raises(dg.DagsterExecutionInterruptedError):
        execute(definitions, instance)
    assert not list((root / "docs/node").glob("*.jsonl"))
    execute(definitions, instance)
    assert result_of(root, "docs", "node") == EXPECTED
