"""Tests of operators that take batches, in every mode, by a run of each."""

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import OperatorContext, StopRun, config, data, data_register
from dagster_dataops.errors import OperatorOptionError, RecordError, RunStoppedError
from tests.execution.helpers import (
    MODES,
    SMALL,
    TINY,
    USUAL,
    SpanSizes,
    cut_by,
    error_rows,
    node,
    run,
    run_over,
    without_traceback,
    write_input,
)
from tests.nodes import Manifest, ResumePolicy

data_register.new_group("batches")
Records = list[dict[str, Any]]
KINDS = ("keep", "keep", "keep", "keep", "drop", "split", "fail", "raise", "nonsense")


def _outcomes(records: Records) -> list[Any]:
    """Return an outcome a record that shows with which others it was in a batch."""
    if any(record["do"] == "raise" for record in records):
        raise ValueError("one of these")
    found: list[Any] = []
    for record in records:
        made = {"n": record["n"], "batch": [one["n"] for one in records]}
        match record["do"]:
            case "drop":
                found.append([])
            case "split":
                found.append([made, made])
            case "fail":
                found.append(KeyError(record["n"]))
            case "nonsense":
                found.append(7)
            case _:
                found.append(made)
    return found


@data_register("data.batches", rewrite_func="forward_batch")
def shown(records: Records) -> list[Any]:
    return _outcomes(records)


@data_register("data.batches", rewrite_func="forward_batch")
async def shown_async(records: Records) -> list[Any]:
    return _outcomes(records)


@data_register("data.batches", rewrite_func="forward_window")
def window(records: Records) -> list[Any]:
    if any(record["do"] == "raise" for record in records):
        raise ValueError("one of these")
    numbers = [record["n"] for record in records]
    return [{"part": numbers[:3]}, {"part": numbers[3:]}] if numbers[3:] else [{"part": numbers}]


@data_register("data.batches", rewrite_func="forward_batch")
def counted(records: Records, context: OperatorContext) -> list[Any]:
    if int(os.environ.get("STOP_AT", "-1")) in [record["n"] for record in records]:
        raise StopRun("no more")
    context.count(calls=1, records=len(records))
    return [context.drop("odd") if record["n"] % 2 else record for record in records]


def _shown_with_the_flag(records: Records, flag: str) -> list[Any]:
    numbers = [record["n"] for record in records]
    failing = () if Path(flag).exists() else (3, 4, 5, *range(9, 14))
    return [KeyError(n) if n in failing else {"n": n, "batch": numbers} for n in numbers]


@data_register("data.batches", rewrite_func="forward_batch")
def flagged(records: Records, flag: str = "") -> list[Any]:
    return _shown_with_the_flag(records, flag)


@data_register("data.batches", rewrite_func="forward_batch")
async def flagged_async(records: Records, flag: str = "") -> list[Any]:
    return _shown_with_the_flag(records, flag)


@data_register("data.batches", rewrite_func="forward_batch")
def kills_its_worker(records: Records) -> list[Any]:
    if any(record["do"] == "raise" for record in records):
        os.kill(os.getpid(), signal.SIGKILL)
    return records


def _plan(count: int) -> Records:
    chance = random.Random(count)
    return [{"n": n, "do": chance.choice(KINDS)} for n in range(count)]


def _expected(records: Records, size: int) -> Records:
    """Return the result, made without the engine."""

    def of_batch(batch: Records) -> Records:
        try:
            found = _outcomes(batch)
        except ValueError:
            if len(batch) == 1:
                return []
            middle = len(batch) // 2
            return of_batch(batch[:middle]) + of_batch(batch[middle:])
        kept = [one if isinstance(one, list) else [one] for one in found]
        return [one for part in kept for one in part if isinstance(one, dict)]

    batches = (records[at : at + size] for at in range(0, len(records), size))
    return [one for batch in batches for one in of_batch(batch)]


def _operator(mode: str, **given: Any) -> Any:
    chosen = shown_async if mode == "async" else shown
    return chosen(_concurrency_mode=mode, _stop_after_failures=0, **given)


@pytest.mark.parametrize("sizes", [TINY, SMALL, USUAL], ids=["tiny", "small", "usual"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_makes_the_same_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, workers: int, sizes: SpanSizes
) -> None:
    cut_by(monkeypatch, sizes)
    records = _plan(100)
    dataset = write_input(tmp_path / "input.jsonl", records)
    folder = node(tmp_path)
    report = run(_operator(mode, _max_workers=workers, _batch_size=7), dataset, folder)
    assert list(report.dataset) == _expected(records, 7)
    failing = [record["n"] for record in records if record["do"] in {"fail", "raise", "nonsense"}]
    assert [row["index"] for row in error_rows(folder)] == failing
    assert report.manifest.failed == len(failing)
    assert report.manifest.dropped == sum(record["do"] == "drop" for record in records)


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_windows_have_any_number_of_records(tmp_path: Path, mode: str) -> None:
    records = [{"n": n, "do": "raise" if n == 9 else "keep"} for n in range(20)]
    operator = window(_concurrency_mode=mode, _max_workers=2, _batch_size=8)
    report = run_over(tmp_path, operator, records)
    parts = [[0, 1, 2], [3, 4, 5, 6, 7], [8], [10, 11], [12, 13, 14], [15], [16, 17, 18], [19]]
    assert [record["part"] for record in report.dataset] == parts
    assert (report.manifest.failed, report.manifest.dropped) == (1, 0)


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_counts_and_drops_of_batches_are_exact(tmp_path: Path, mode: str) -> None:
    records = [{"n": n, "do": "keep"} for n in range(50)]
    operator = counted(_concurrency_mode=mode, _max_workers=2, _batch_size=8)
    manifest = run_over(tmp_path, operator, records).manifest
    assert manifest.counts == {"calls": 7, "records": 50}
    assert manifest.drops == {"odd": 25}


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_a_batch_that_stops_the_run_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    records = [{"n": n, "do": "keep"} for n in range(50)]
    dataset = write_input(tmp_path / "input.jsonl", records)
    operator = counted(_concurrency_mode=mode, _max_workers=2, _batch_size=8, _fresh_workers=True)
    monkeypatch.setenv("STOP_AT", "20")
    with pytest.raises(RunStoppedError, match="no more"):
        run(operator, dataset, node(tmp_path))
    assert error_rows(node(tmp_path)) == []
    monkeypatch.delenv("STOP_AT")
    report = run(operator, dataset, node(tmp_path))
    assert report.manifest.rows_out == 25
    assert report.manifest.counts == {"calls": 7, "records": 50}


def test_a_record_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    records = [{"n": n, "do": "raise" if n == 41 else "keep"} for n in range(100)]
    operator = kills_its_worker(_concurrency_mode="process", _max_workers=2, _batch_size=16)
    report = run_over(tmp_path, operator, records)
    assert [record["n"] for record in report.dataset] == [n for n in range(100) if n != 41]
    assert [row["index"] for row in error_rows(node(tmp_path))] == [41]


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_that_is_not_ignored_ends_the_run(tmp_path: Path, mode: str) -> None:
    records = [{"n": n, "do": "fail" if n == 30 else "keep"} for n in range(40)]
    operator = _operator(mode, _max_workers=2, _batch_size=8, _ignore_errors=False)
    with pytest.raises(RecordError, match="record 30"):
        run_over(tmp_path, operator, records)


@pytest.mark.parametrize("mode", MODES)
def test_failed_records_are_retried_alone(tmp_path: Path, mode: str) -> None:
    records = _plan(60)
    dataset = write_input(tmp_path / "input.jsonl", records)
    operator = _operator(mode, _max_workers=2, _batch_size=8)
    first = run(operator, dataset, node(tmp_path))
    rows = without_traceback(error_rows(node(tmp_path)))
    retried = {"run": "again", "resume": ResumePolicy.FAILED_RECORDS}
    again = run(operator, dataset, node(tmp_path), **retried)
    assert f"retrying {len(rows)} failed records of run test" in again.notes[0]
    assert list(again.dataset) == _expected(records, 8)
    assert without_traceback(error_rows(node(tmp_path))) == rows
    assert again.manifest.failed == first.manifest.failed


@pytest.mark.parametrize("mode", MODES)
def test_failed_records_are_in_the_same_batches_in_every_mode(tmp_path: Path, mode: str) -> None:
    flag, dataset = tmp_path / "flag", write_input(tmp_path / "input.jsonl", _plan(16))
    chosen = flagged_async if mode == "async" else flagged
    operator = chosen(
        flag=str(flag),
        _concurrency_mode=mode,
        _max_workers=1,
        _batch_size=4,
        _stop_after_failures=0,
    )
    run(operator, dataset, node(tmp_path))
    flag.touch()
    retried = {"run": "again", "resume": ResumePolicy.FAILED_RECORDS}
    again = run(operator, dataset, node(tmp_path), **retried)
    found = {row["n"]: row["batch"] for row in again.dataset}
    assert [found[n] for n in (3, 4, 5)] == [[3], [4, 5], [4, 5]]
    assert [found[n] for n in range(9, 14)] == [[9, 10, 11]] * 3 + [[12, 13]] * 2


def test_another_batch_size_begins_anew(tmp_path: Path) -> None:
    records = _plan(40)
    sizes = [
        run_over(tmp_path, _operator("single", _batch_size=size), records).manifest.fingerprint
        for size in (8, 8, 5)
    ]
    assert sizes[0] == sizes[1] != sizes[2]


def test_a_batch_size_without_batches_is_refused() -> None:
    @data_register("data.batches")
    def alone(record: dict[str, Any]) -> Any:
        return record

    with pytest.raises(OperatorOptionError, match="needs an operator with forward_batch"):
        alone(_batch_size=8)


def test_a_class_takes_batches_in_plain_python(tmp_path: Path) -> None:
    class Sizes(data.batches):
        def forward_batch(self, records: Records) -> list[Any]:
            return [{**record, "size": len(records)} for record in records]

    with config.temporary(data_process_path=tmp_path):
        made = Sizes(_batch_size=3)([{"n": n} for n in range(7)])
    assert [record["size"] for record in made] == [3, 3, 3, 3, 3, 3, 1]
    manifest = Manifest.load(next(tmp_path.rglob("*_results.jsonl.json")))
    assert manifest is not None
    assert manifest.rows_out == 7
