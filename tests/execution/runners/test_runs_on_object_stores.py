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
from dagster_dataops.errors import DatasetOperatorError, RunStoppedError, StorageError
from tests.each import slow_but
from tests.execution.helpers import write_input
from tests.nodes import (
    NodeFolder,
    OperatorExecutor,
    ResumePolicy,
    Root,
    RunContext,
    existing,
    given_stream,
)
from tests.object_stores import FakeStore, FakeUpload, keep_at_most, machine

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


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_selection_that_fails_to_decide_keeps_its_sketches(go_on, tmp_path, error, monkeypatch):
    source = write_input(tmp_path / "in.jsonl", RECORDS)
    operator = data.dedup.Exact("n", _concurrency_mode="single")
    with monkeypatch.context() as patch:

        def keep(*_: object) -> Any:
            raise error

        patch.setattr(type(operator), "keep", keep)
        with pytest.raises((DatasetOperatorError, KeyboardInterrupt)):
            run(operator, go_on("unique"), [source])

    report = run(operator, go_on("unique"), [source])
    assert report.manifest.resumed == len(RECORDS)


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


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_a_run_without_room_for_its_outputs_publishes_the_same(
    go_on, store, tmp_path, monkeypatch, mode
):
    """Every byte that was sent is freed at once, in this run and in the one that resumes it."""
    keep_at_most(monkeypatch, outputs=0, result=1 << 30)
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


@pytest.mark.slow
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


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every result be so large that it stays in the bucket."""
    keep_at_most(monkeypatch, outputs=0, result=100)


def versions_in(store: FakeStore) -> list[str]:
    assert store.uploads == set()
    return [key for key in store.objects if "/.versions/" in key and key.endswith("results.jsonl")]


OPERATORS: dict[str, Callable[[], Any]] = {
    **{mode: lambda mode=mode: tried(_concurrency_mode=mode) for mode in ("single", "thread")},
    "process": lambda: tried(_concurrency_mode="process"),
    "selection": lambda: data.dedup.Exact(input_key="n"),
    "dataset": lambda: data.sample.Sort(sort_key="n"),
}


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", slow_but("thread", OPERATORS))
def test_a_large_result_is_written_to_the_bucket_and_read_there(go_on, store, tmp_path, kind):
    source = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(200)])
    whole = NodeFolder.of(Root(tmp_path / "whole") / "made")
    expected = run(OPERATORS[kind](), whole, [source])
    here = go_on("made")

    for _ in range(2):  # the second one has equal bytes
        report = run(OPERATORS[kind](), here, [source])

        assert not here.result.exists()
        assert not list(here.path.glob(".*.draft"))
        assert report.dataset.read() == expected.dataset.read()
        assert report.dataset.fingerprint == expected.dataset.fingerprint
        assert [store.objects[key][0] for key in versions_in(store)] == [whole.result.read_bytes()]
    first = versions_in(store)
    run(OPERATORS[kind](), go_on("made"), [source])
    assert versions_in(store) == first  # the key of the result is kept
    assert run(OPERATORS[kind](), go_on("made"), [source], reuse_finished=True).reused
    assert load_result(go_on("made")).path.read_bytes() == whole.result.read_bytes()


@pytest.mark.usefixtures("large")
def test_the_next_operator_reads_a_large_result_by_ranges(go_on, tmp_path):
    source = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(200)])
    first = run(tried(_concurrency_mode="single"), go_on("tried"), [source])
    second = run(odd(), here := go_on("odd"), [first.dataset])

    assert second.dataset.rows == 100
    assert second.manifest.inputs[0]["path"].endswith("/tried/tried_results.jsonl")
    assert not here.path.parent.joinpath("tried").exists()


@pytest.mark.usefixtures("large")
def test_a_large_result_replaces_a_small_one_and_is_replaced_by_one(go_on, store, tmp_path):
    here = go_on("odd")
    for count_ in (2, 300, 2):
        source = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(count_)])
        report = run(odd(), here, [source])
        assert here.result.exists() == (count_ == 2)
        assert report.dataset.rows == count_ // 2
        assert len(versions_in(store)) == 1


@pytest.mark.usefixtures("large")
def test_failed_records_of_a_large_result_are_retried(go_on, tmp_path):
    allowed = []

    @data_register("data.object_store_tests", _concurrency_mode="single")
    def sometimes(record: dict) -> dict:
        if record["n"] % 7 == 3 and not allowed:
            raise ValueError("three")
        return record

    source = write_input(tmp_path / "in.jsonl", RECORDS)
    run(sometimes(), here := go_on("sometimes"), [source])
    allowed.append(1)
    for folder in (here, go_on("sometimes")):
        report = run(sometimes(), folder, [source], resume=ResumePolicy.FAILED_RECORDS)
        assert report.dataset.read() == RECORDS
    assert report.manifest.resumed in {51, 60}


@pytest.mark.usefixtures("large")
def test_outcomes_in_a_large_result_are_reused_by_ranges(go_on, tmp_path):
    calls = []

    @data_register("data.object_store_tests", _concurrency_mode="single")
    def called(record: dict) -> dict:
        calls.append(record["n"])
        return record

    operator = called(_reuse_outcomes=True)
    run(operator, go_on("called"), [write_input(tmp_path / "a.jsonl", RECORDS)])
    there = go_on("called")
    grown = write_input(tmp_path / "b.jsonl", [{"n": 100}, *RECORDS])
    report = run(operator, there, [grown])

    assert calls == [*range(60), 100]
    assert report.dataset.read() == [{"n": 100}, *RECORDS]
    assert not there.result.exists()


@pytest.mark.usefixtures("large")
def test_an_upload_that_fails_is_aborted_and_the_result_before_it_stands(
    go_on, store, tmp_path, monkeypatch
):
    source = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(200)])
    run(odd(), go_on("odd"), [source])
    source = write_input(tmp_path / "in.jsonl", [{"n": n} for n in range(400)])

    def refused(self: FakeUpload, data: bytes) -> None:
        raise StorageError("fake://bucket/x", "upload to it", "the store is down")

    with monkeypatch.context() as patched:
        patched.setattr(FakeUpload, "write", refused)
        with pytest.raises(StorageError, match="the store is down"):
            run(odd(), here := go_on("odd"), [source])

    assert store.uploads == set()
    assert not list(here.path.glob(".*.draft"))
    assert load_result(go_on("odd")).rows == 100
    assert run(odd(), go_on("odd"), [source]).dataset.rows == 200
    assert len(versions_in(store)) == 1


@pytest.mark.usefixtures("large")
def test_results_with_several_names_and_artefacts_stay_files(go_on, tmp_path):
    source = write_input(tmp_path / "in.jsonl", RECORDS)
    run(parity(_concurrency_mode="single"), here := go_on("parity"), [source])
    run(Listed(), listed := go_on("listed"), [source])

    assert sorted(path.name for path in here.path.rglob("*_results.jsonl")) == [
        "even_results.jsonl",
        "odd_results.jsonl",
    ]
    assert listed.result.exists()
    for name in ("parity", "listed"):
        again = parity(_concurrency_mode="single") if name == "parity" else Listed()
        assert run(again, go_on(name), [source], reuse_finished=True).reused


@pytest.mark.slow
def test_a_stream_whose_items_were_sent_stays_whole(go_on, store, monkeypatch):
    keep_at_most(monkeypatch, outputs=0, result=1 << 30)
    rows = [{"n": n} for n in range(2500)]

    def sent() -> int:
        return len([key for key in list(store.objects) if "/.journal/data/" in key])

    for objects in (1, 3, 10_000):  # a second attempt sends more, and a third one publishes
        stream = read_sequence(rows).map(Working()).and_return(on_error="quarantine")
        operator = given_stream("mixed", lambda stream=stream: stream)
        with suppress(RunStoppedError):
            run(
                operator,
                here := go_on("mixed"),
                [],
                flush_seconds=0,
                should_stop=lambda objects=objects: "enough" if sent() >= objects else None,
            )

    assert here.result.read_bytes().count(b"\n") == 2499
    assert load_result(go_on("mixed")).read() == [row for row in rows if row["n"] != 3]


@pytest.mark.slow
def test_a_retry_that_is_cut_short_leaves_the_result_on_this_machine_whole(
    go_on, store, tmp_path, monkeypatch
):
    keep_at_most(monkeypatch, outputs=0, result=1 << 30)
    tries = []

    @data_register("data.object_store_tests", _concurrency_mode="single")
    def failing(record: dict) -> dict:
        if tries:
            time.sleep(0.05)
        if record["n"] % 2:
            raise ValueError("odd")
        return {**record, "text": "x" * 3000}

    source = write_input(tmp_path / "in.jsonl", RECORDS)
    run(failing(), here := go_on("failing"), [source])
    whole = here.result.read_bytes()
    tries.append(1)

    with pytest.raises(RunStoppedError):
        run(
            failing(),
            here,
            [source],
            resume=ResumePolicy.FAILED_RECORDS,
            flush_seconds=0,
            should_stop=lambda: "enough" if _has_outputs(store) else None,
        )

    assert here.result.read_bytes() == whole


def _has_outputs(store: FakeStore) -> bool:
    return any("/.journal/data/" in key for key in list(store.objects))
