"""Time limits of coroutines."""

import asyncio
from pathlib import Path

import pytest

from dagster_dataops.data import data_register
from dagster_dataops.execution.timeouts import event_loop
from tests.execution.engine import Failure
from tests.execution.helpers import call_one_async, error_rows, lines, node, run, write_input
from tests.execution.timeouts.hanging import (
    GROUP,
    RELEASE,
    numbered,
)

# pytest-timeout's SIGALRM would prevent the product's.
pytestmark = pytest.mark.timeout(method="thread")


def test_a_coroutine_that_swallows_cancellation_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "_GRACE_SECONDS", 0.05)

    @data_register(GROUP, _timeout=0.1, _max_workers=2, _stop_after_failures=0)
    async def stubborn(record):
        while record["hang"] and not RELEASE.is_set():
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue
        return record

    records = numbered(2, 3, 4)
    run(stubborn(), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    assert [row["index"] for row in error_rows(node(tmp_path))] == [2, 3, 4]
    assert node(tmp_path).result.read_bytes() == lines(r for r in records if not r["hang"])


def test_a_cancelled_coroutine_may_clean_up() -> None:
    cleaned = []

    @data_register(GROUP, _timeout=0.05, _stop_after_failures=0)
    async def tidy(record):
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0)
            cleaned.append(record)

    outcome = asyncio.run(call_one_async(tidy(), b"{}"))
    assert isinstance(outcome, Failure)
    assert outcome.exception == "RecordTimeout"
    assert cleaned == [{}]


def test_a_thread_of_a_coroutine_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "_GRACE_SECONDS", 0.05)

    @data_register(GROUP, _timeout=0.1, _stop_after_failures=0)
    async def waits_in_a_thread(record):
        await asyncio.to_thread(RELEASE.wait, 30)

    run(waits_in_a_thread(), write_input(tmp_path / "input.jsonl", [{"n": 1}]), node(tmp_path))
    assert not RELEASE.is_set()
    assert [row["exception"] for row in error_rows(node(tmp_path))] == ["RecordTimeout"]
