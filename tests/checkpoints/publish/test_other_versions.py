"""Tests of what other versions of this package have written: it is named, and kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from dagster_dataops.checkpoints.checkpoint import existing
from dagster_dataops.checkpoints.folder import run_fingerprint
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, load_result, other_format
from dagster_dataops.checkpoints.journal.frames import FORMAT, FrameKind, json_frame
from dagster_dataops.checkpoints.journal.journal_reader import format_of
from dagster_dataops.checkpoints.resume.resume_policy import ResumePolicy
from dagster_dataops.data import data_register
from dagster_dataops.errors import RetryRefusedError, TraceError
from dagster_dataops.operators.outcomes.named_outputs import To
from dagster_dataops.operators.outcomes.record_context import StopRun
from dagster_dataops.streams.data_pipeline import DataPipelineBuilder
from dagster_dataops.tracing.tracer import trace
from tests.execution.helpers import node, run, write_input
from tests.object_stores import FakeStore, machine

OLDER: Final = "3-little"
NEWER: Final = "9-little"
_stops = [False]
_COUNT: Final = 40


@contextmanager
def _version(format_: str) -> Iterator[None]:
    """Write another format inside the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_fingerprint, "FORMAT", format_)
        yield


def _work(record: dict[str, Any]) -> dict[str, Any]:
    if _stops[0] and record["n"] == _COUNT // 2:
        raise StopRun("enough")
    if record["n"] % 7 == 3:
        raise ValueError("three")
    return record


@data_register("data.other_versions", _concurrency_mode="single")
def single(record):
    return _work(record)


@data_register("data.other_versions", _concurrency_mode="thread")
def threads(record):
    return _work(record)


@data_register("data.other_versions", outputs=("odd", "even"), _concurrency_mode="single")
def routed(record):
    _work(record)
    return To("odd" if record["n"] % 2 else "even")


class Streamed(data_register.new_group("other_versions_streams")):
    def stream(self, records: DataPipelineBuilder) -> DataPipelineBuilder:
        return records.filter(lambda record: record["n"] % 7 != 3).map(_work)


OPERATORS: Final = {
    "single": single,
    "thread": threads,
    "outputs": routed,
    "stream": Streamed,
}


def _input(tmp_path: Path) -> Any:
    return write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_COUNT)])


def _unfinished(tmp_path: Path, kind: str, format_: str) -> tuple[Any, NodeFolder]:
    dataset, folder = _input(tmp_path), node(tmp_path)
    _stops[0] = True
    try:
        with _version(format_), pytest.raises(BaseException, match="enough"):
            run(OPERATORS[kind](), dataset, folder, run="older", flush_seconds=0.0)
    finally:
        _stops[0] = False
    return dataset, folder


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"  # it has a time
    }


@pytest.mark.parametrize("format_", [OLDER, NEWER])
@pytest.mark.parametrize("kind", ["single", "thread", "outputs", "stream"])
def test_a_checkpoint_of_another_format_is_named_and_kept(
    tmp_path: Path, kind: str, format_: str
) -> None:
    dataset, folder = _unfinished(tmp_path, kind, format_)
    (checkpoint,) = existing(folder.checkpoints)
    before = _files(checkpoint.folder)
    assert (checkpoint.format, checkpoint.foreign, checkpoint.table.records) == (format_, True, 0)
    report = run(OPERATORS[kind](), dataset, folder)
    (note,) = [one for one in report.notes if "format" in one]
    place = folder.path / ".other_versions" / f"format-{format_}"
    assert f"of run older has format {format_}; this version reads {FORMAT}" in note
    assert str(place) in note
    assert report.manifest.resumed == 0
    assert _files(place / "checkpoint-1") == before
    assert not folder.checkpoints.exists()


def _machine(tmp_path: Path, number: int, store: FakeStore) -> NodeFolder:
    return node(machine(tmp_path / str(number), store) / "docs")


@pytest.mark.parametrize("kind", ["single", "thread", "outputs", "stream"])
def test_a_checkpoint_of_another_format_is_kept_on_an_object_store(
    tmp_path: Path, kind: str
) -> None:
    """The journal's entries are deleted when a result is published."""
    dataset, store = _input(tmp_path), FakeStore()
    _stops[0] = True
    try:
        with _version(NEWER), pytest.raises(BaseException, match="enough"):
            run(OPERATORS[kind](), dataset, _machine(tmp_path, 1, store), flush_seconds=0.0)
    finally:
        _stops[0] = False
    folder = _machine(tmp_path, 2, store)
    report = run(OPERATORS[kind](), dataset, folder)
    (note,) = [one for one in report.notes if "format" in one]
    place = f"root/docs/node/.other_versions/format-{NEWER}"
    assert f"kept in memory://bucket/{place} when" in note
    kept = {key: found[0] for key, found in store.objects.items() if key.startswith(place)}
    assert f"{place}/checkpoint-1/journal" in kept
    assert kept == {
        f"{place}/{name}": data
        for name, data in _files(folder.other_versions / f"format-{NEWER}").items()
    }


def test_a_result_of_another_format_is_kept_on_an_object_store(tmp_path: Path) -> None:
    dataset, store = _input(tmp_path), FakeStore()
    first = _machine(tmp_path, 1, store)
    with _version(OLDER):
        run(single(), dataset, first)
    before = first.result.read_bytes()
    report = run(threads(), dataset, _machine(tmp_path, 2, store))
    url = "memory://bucket/root/docs/node/node_results.jsonl"
    assert any(f"{url} has format" in note for note in report.notes)
    place = f"root/docs/node/.other_versions/format-{OLDER}"
    assert store.objects[f"{place}/result.jsonl"][0] == before
    assert f"{place}/manifest.json" in store.objects


def test_a_kept_checkpoint_is_used_by_its_version_when_it_is_put_back(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", NEWER)
    run(single(), dataset, folder)
    kept = folder.path / ".other_versions" / f"format-{NEWER}" / "checkpoint-1"
    folder.checkpoints.mkdir()
    kept.rename(folder.checkpoints / "1")
    with _version(NEWER), pytest.MonkeyPatch.context() as patch:
        patch.setattr("dagster_dataops.checkpoints.checkpoint.FORMAT", NEWER)
        report = run(single(), dataset, folder, resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == _COUNT // 2


def test_a_resumable_checkpoint_is_used_beside_one_of_another_format(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", OLDER)
    _stops[0] = True
    with pytest.raises(Exception, match="enough"):
        run(single(), dataset, folder)
    _stops[0] = False
    assert [one.format for one in existing(folder.checkpoints)] == [FORMAT, OLDER]
    report = run(single(), dataset, folder, resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == _COUNT // 2
    assert (folder.path / ".other_versions" / f"format-{OLDER}" / "checkpoint-1").is_dir()


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_result_of_another_format_is_named_and_kept(tmp_path: Path, kind: str) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    operator = OPERATORS[kind]()
    with _version(NEWER):
        old = run(operator, dataset, folder, run="newer")
    results = {
        name: b"".join(part.read_bytes() for part in sorted(path.iterdir()))
        if path.is_dir()
        else path.read_bytes()
        for name, path in _results(old, folder).items()
    }
    manifest = folder.manifest.read_bytes()
    dataset = write_input(tmp_path / "other.jsonl", [{"n": n} for n in range(10)])
    report = run(operator, dataset, folder, reuse_finished=True)
    (note,) = [one for one in report.notes if "format" in one]
    assert f"has format {NEWER}; this version reads {FORMAT}" in note
    place = folder.path / ".other_versions" / f"format-{NEWER}"
    assert (place / "manifest.json").read_bytes() == manifest
    for name, content in results.items():
        kept = place / f"{name or 'result'}.jsonl"
        files = sorted(kept.iterdir()) if kept.is_dir() else [kept]
        assert b"".join(file.read_bytes() for file in files) == content
    assert other_format(folder.manifest) == ""


def _results(report: Any, folder: NodeFolder) -> dict[str, Path]:
    if not report.outputs:
        return {"": folder.result}
    return {name: one.dataset.path for name, one in report.outputs.items()}


def test_failed_records_of_another_format_are_refused_with_the_reason(tmp_path: Path) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    with _version(OLDER):
        run(single(), dataset, folder)
    before = _files(folder.path)
    with pytest.raises(RetryRefusedError) as caught:
        run(single(), dataset, folder, resume=ResumePolicy.FAILED_RECORDS)
    assert f"the kept journal has format {OLDER}; this version reads {FORMAT}" in str(caught.value)
    assert "edited" not in str(caught.value)
    assert _files(folder.path) == before
    assert load_result(folder).read()  # it stays readable


def test_a_manifest_with_unknown_fields_is_named_and_touches_nothing(tmp_path: Path) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    run(single(), dataset, folder)
    content = orjson.loads(folder.manifest.read_bytes())
    folder.manifest.write_bytes(orjson.dumps({**content, "colour": 1}))
    before = _files(folder.path)
    with pytest.raises(RetryRefusedError, match=r"unknown \(with colour\); this version reads"):
        run(single(), dataset, folder, resume=ResumePolicy.FAILED_RECORDS)
    assert _files(folder.path) == before
    report = run(single(), dataset, folder)
    assert any("unknown (with colour)" in note for note in report.notes)
    (kept,) = (folder.path / ".other_versions").glob("*/manifest.json")
    assert kept.read_bytes() == before[folder.manifest.name]


def test_a_trace_through_a_result_of_another_format_is_refused(tmp_path: Path) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    with _version(NEWER):
        run(single(), dataset, folder)
    with pytest.raises(TraceError, match=f"the manifest has format {NEWER}"):
        trace(folder.path, line=1)


@pytest.mark.parametrize(
    ("journal", "format_"),
    [
        (b"", ""),
        (b"DOJ1", ""),
        (b"DOJ2 of the future", "DOJ2"),
        (bytes(100), ""),
        (b"noise" * 9, ""),
        (json_frame(FrameKind.ATTEMPT, {"run": "a", "fingerprint": {"format": OLDER}}), OLDER),
        (json_frame(FrameKind.ATTEMPT, {"fingerprint": None}), ""),
        (json_frame(FrameKind.ATTEMPT, {"fingerprint": {"format": 3}}), ""),
    ],
)
def test_the_format_of_a_journal_is_found(tmp_path: Path, journal: bytes, format_: str) -> None:
    assert format_of(tmp_path / "missing") == ""
    (tmp_path / "journal").write_bytes(journal)
    assert format_of(tmp_path / "journal") == format_


def test_a_format_that_is_no_name_of_a_file_stays_in_the_folder(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", "../../out")
    run(single(), dataset, folder)
    (kept,) = (folder.path / ".other_versions").iterdir()
    assert kept.name == "format-_out"
    assert (kept / "checkpoint-1").is_dir()


def test_a_damaged_checkpoint_of_this_version_is_removed_as_before(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", FORMAT)
    (folder.checkpoints / "1" / "journal").write_bytes(bytes(500))
    run(single(), dataset, folder)
    assert not (folder.path / ".other_versions").exists()
