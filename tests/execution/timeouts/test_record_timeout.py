"""Tests of time limits: a call that takes too long is abandoned, and the others continue."""

import gc
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.execution.records.record_failures import timed_out
from dagster_dataops.execution.timeouts.record_timeout import (
    RecordTimeout,
)
from tests.execution.helpers import error_rows, lines, node, run, write_input
from tests.execution.timeouts.hanging import hanging_in, hangs_async, numbered

# pytest-timeout's SIGALRM would prevent the product's.
pytestmark = pytest.mark.timeout(method="thread")


@pytest.mark.parametrize("mode", ["single", "thread", "async"])
def test_only_the_records_that_hang_fail(tmp_path: Path, mode: str) -> None:
    hanging = (0, 3, 4, 5, 17, 29)
    records = numbered(*hanging)
    run(hanging_in(mode), write_input(tmp_path / "input.jsonl", records), node(tmp_path))
    well = [record for record in records if not record["hang"]]
    assert node(tmp_path).result.read_bytes() == lines(well)
    rows = error_rows(node(tmp_path))
    assert [row["index"] for row in rows] == list(hanging)
    for row in rows:
        assert row["exception"] == "RecordTimeout"
        assert "longer than its limit of 1.5 s; raise _timeout" in row["message"]
        assert row["input"] == records[row["index"]]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "async"])
def test_a_timeout_is_a_failed_attempt(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", numbered(1, count=3))
    run(hanging_in(mode, _retries=2, _backoff=0), dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert (row["exception"], row["attempts"]) == ("RecordTimeout", 3)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "async"])
@pytest.mark.parametrize(("retry_on", "tries"), [("ValueError", 1), ("TimeoutError", 2)])
def test_a_timeout_is_retried_on_request(
    tmp_path: Path, mode: str, retry_on: str, tries: int
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", numbered(0, count=1))
    operator = hanging_in(mode, _retries=1, _backoff=0, _retry_on=retry_on)
    run(operator, dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert row["attempts"] == tries


@pytest.mark.parametrize("mode", ["single", "thread"])
def test_an_async_operator_keeps_its_limit_in_other_modes(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", numbered(1, count=4))
    run(hangs_async(_concurrency_mode=mode), dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert (row["index"], row["exception"]) == (1, "RecordTimeout")


def test_a_timeout_contains_a_remedy_and_pickles() -> None:
    error = RecordTimeout(1.5)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.seconds) == (str(error), 1.5)
    assert isinstance(error, TimeoutError)
    failure = timed_out(1.5)
    assert (failure.exception, failure.message) == ("RecordTimeout", str(error))


@pytest.mark.parametrize("mode", ["single", "thread"])
def test_the_error_row_shows_where_the_call_hung(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", numbered(0, count=1))
    run(hanging_in(mode), dataset, node(tmp_path))
    (row,) = error_rows(node(tmp_path))
    assert "in hangs" in row["traceback"]
    assert "RELEASE.wait(30)" in row["traceback"]
    assert "execution/records/" not in row["traceback"]
    assert "in limited" not in row["traceback"]


def test_no_garbage_is_collected_while_it_is_looked_where_a_call_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPython would wait for itself if a collection found a `threading.local` just then."""
    looked: list[bool] = []
    frames = sys._current_frames

    def look() -> dict[int, Any]:
        looked.append(gc.isenabled())
        return frames()

    monkeypatch.setattr(sys, "_current_frames", look)
    test_the_error_row_shows_where_the_call_hung(tmp_path, "thread")
    assert looked
    assert not any(looked)
    assert gc.isenabled()
