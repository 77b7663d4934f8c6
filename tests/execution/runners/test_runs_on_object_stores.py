"""Test operators of all kinds with results on an object store, each run on another machine."""

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import (
    JsonlDataset,
    RunReport,
    To,
    data,
    data_register,
    load_artefact,
    load_result,
    read_sequence,
)
from dagster_dataops.checkpoints.places import sent_segments
from dagster_dataops.errors import RunStoppedError
from dagster_dataops.foundation.places.root import Root
from tests.execution.helpers import write_input
from tests.nodes import (
    NodeFolder,
    OperatorExecutor,
    ResumePolicy,
    RunContext,
    existing,
    given_stream,
)
from tests.object_stores import FakeStore, machine

group = data_register.new_group("object_store_tests")
RECORDS = [{"n": n} for n in range(60)]
RUNS = count()


@data_register("data.object_store_tests", outputs=("even", "odd"))
def parity(record: dict) -> Any:
    if record["n"] == 7:
        raise ValueError("seven")
    return To("odd" if record["n"] % 2 else "even")


@data_register("data.object_store_tests", _concurrency_mode="single")
def odd(record: dict) -> Any:
    return record if record["n"] % 2 else []


class Listed(group):
    def build(self, records, folder):
        (folder / "empty").mkdir()
        (folder / "inner").mkdir()
        (folder / "inner" / "numbers").write_text(str([record["n"] for record in records]))


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def go_on(tmp_path: Path, store: FakeStore) -> Callable[[str], NodeFolder]:
    """Return a function that returns the folder of a node on another machine."""
    numbers = count()

    def folder(name: str) -> NodeFolder:
        return NodeFolder.of(machine(tmp_path / f"machine{next(numbers)}", store) / name)

    return folder


def run(operator: Any, folder: NodeFolder, inputs: list[JsonlDataset], **context: Any) -> RunReport:
    given = RunContext(**{"run": f"run{next(RUNS)}", "resume": ResumePolicy.AUTO, **context})
    return OperatorExecutor(given).run(operator, inputs, folder)


def test_named_outputs_are_read_on_another_machine(go_on, tmp_path):
    source = write_input(tmp_path / "in.jsonl", RECORDS)
    run(parity(_concurrency_mode="single"), go_on("parity"), [source])

    there = go_on("parity")
    even = load_result(NodeFolder.of(there.root / "even"))
    assert even.read() == [record for record in RECORDS if record["n"] % 2 == 0]
    assert load_result(NodeFolder.at(there.root / "odd")).rows == 29
    again = run(parity(_concurrency_mode="single"), go_on("parity"), [source], reuse_finished=True)
    assert again.reused
    assert again.error_path is not None
    retry = {"resume": ResumePolicy.FAILED_RECORDS}
    report = run(parity(_concurrency_mode="single"), go_on("parity"), [source], **retry)
    assert report.manifest.resumed == 59


def test_an_artefact_is_read_on_another_machine(go_on, tmp_path):
    source = write_input(tmp_path / "in.jsonl", RECORDS)
    for records in (RECORDS, RECORDS[:3]):
        source = write_input(tmp_path / "in.jsonl", records)
        run(Listed(), go_on("listed"), [source])

    found = load_artefact(go_on("listed"))
    assert (found.path / "inner" / "numbers").read_text() == "[0, 1, 2]"
    assert (found.path / "empty").is_dir()


def test_a_dataset_operator_is_read_on_another_machine(go_on, tmp_path):
    source = write_input(tmp_path / "in.jsonl", [*RECORDS, *RECORDS])
    run(data.dedup.Exact(input_key="n"), go_on("unique"), [source])

    assert load_result(go_on("unique")).read() == RECORDS


class Working:
    """A function of a map that fails for one item, and ends the run at another one."""

    def __init__(self, stop_at: int = -1) -> None:
        self.stop_at = stop_at

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.001)
        if row["n"] == self.stop_at:
            raise KeyboardInterrupt
        if row["n"] == 3:
            raise ValueError("three")
        return row

    def __reduce__(self) -> Any:
        return Working, ()  # it counts as the same code for every stop


def test_a_stream_is_resumed_on_another_machine(go_on):
    rows = [{"n": n} for n in range(400)]
    reports = []
    for stop in (200, 390, -1):
        stream = read_sequence(rows).map(Working(stop)).and_return(on_error="quarantine")
        operator = given_stream("mixed", lambda stream=stream: stream)
        with suppress(KeyboardInterrupt):
            reports.append(run(operator, go_on("mixed"), [], flush_seconds=0.02))

    assert len(reports) == 1
    assert reports[0].manifest.resumed > 200
    there = go_on("mixed")
    assert load_result(there).read() == [row for row in rows if row["n"] != 3]
    assert there.errors.read_bytes().count(b"\n") == 1


def test_outcomes_of_another_machine_are_reused(go_on, tmp_path):
    calls = []

    @data_register("data.object_store_tests", _concurrency_mode="single")
    def counted(record: dict) -> dict:
        calls.append(record["n"])
        return record

    operator = counted(_reuse_outcomes=True)
    run(operator, go_on("counted"), [write_input(tmp_path / "a.jsonl", RECORDS)])
    grown = write_input(tmp_path / "b.jsonl", [{"n": 100}, *RECORDS])
    run(operator, go_on("counted"), [grown])

    assert calls == [*range(60), 100]
    assert load_result(go_on("counted")).rows == 61


def test_a_checkpoint_of_other_options_is_kept_until_a_result_is_published(go_on, tmp_path):
    @data_register("data.object_store_tests", _concurrency_mode="single")
    def stopping(record: dict, at: int = 1000) -> dict:
        if record["n"] == at:
            raise KeyboardInterrupt
        return record

    source = write_input(tmp_path / "in.jsonl", RECORDS)
    for at in (30, 20):
        with pytest.raises(KeyboardInterrupt):
            run(stopping(at=at), go_on("stopping"), [source])
    with pytest.raises(KeyboardInterrupt):
        run(stopping(at=10), here := go_on("stopping"), [source])

    assert len(existing(here.checkpoints)) == 3
    run(stopping(at=1000), here := go_on("stopping"), [source])
    assert not here.checkpoints.exists()


@data_register("data.object_store_tests", _max_workers=2)
def tried(record: dict) -> Any:
    time.sleep(0.002)
    if record["n"] % 100 == 50:
        raise ValueError("fifty")
    return {**record, "text": "x" * 400}


def run_until_stored(
    store: FakeStore, objects: int, operator: Any, folder: NodeFolder, source: JsonlDataset
) -> None:
    """Run an operator; stop it when the store has so many objects with outputs."""

    def should_stop() -> str | None:
        stored = [key for key in list(store.objects) if "/.journal/data/" in key]
        return "enough" if len(stored) >= objects else None

    with pytest.raises(RunStoppedError):
        run(operator, folder, [source], should_stop=should_stop, flush_seconds=0)


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_a_run_without_room_for_its_outputs_publishes_the_same(
    go_on, store, tmp_path, monkeypatch, mode
):
    """Every byte that was sent is freed at once, in this run and in the one that resumes it."""
    monkeypatch.setattr(sent_segments, "KEPT_BYTES", 0)
    source = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(1500)])
    operator = tried(_concurrency_mode=mode)
    whole = NodeFolder.of(Root(tmp_path / "whole") / "tried")
    run(operator, whole, [source])

    run_until_stored(store, 2, operator, go_on("tried"), source)
    here = go_on("tried")
    report = run(operator, here, [source], flush_seconds=0)

    assert 0 < report.manifest.resumed < 1500
    assert here.result.read_bytes() == whole.result.read_bytes()
    assert here.errors.read_bytes() == whole.errors.read_bytes()
    assert here.kept.read_bytes() != b""


def test_a_resume_reads_no_outputs_before_it_publishes(go_on, store, tmp_path, monkeypatch):
    source = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(1500)])
    run_until_stored(store, 1, tried(), go_on("tried"), source)
    there = go_on("tried")
    read = []
    monkeypatch.setattr(FakeStore, "read_range", lambda _, key, *__: read.append(key))

    with pytest.raises(RunStoppedError):
        run(tried(), there, [source], should_stop=lambda: "at once")

    assert read == []
    assert existing(there.checkpoints)[0].table.records > 0
