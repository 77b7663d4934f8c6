"""Tests of what other versions of this package have written: it is named, and kept."""

import pickle
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from dagster_dataops import DataPipelineBuilder, StopRun, To, config, load_result, pipeline, trace
from dagster_dataops.checkpoints.folder import run_fingerprint
from dagster_dataops.checkpoints.folder.manifest import unreadable
from dagster_dataops.checkpoints.journal import journal_writer
from dagster_dataops.checkpoints.journal.frames import json_frame
from dagster_dataops.checkpoints.journal.journal_reader import (
    READERS,
    AttemptEntry,
    format_of,
    is_newer,
    is_read,
)
from dagster_dataops.data import data_register
from dagster_dataops.errors import (
    NewerVersionError,
    ResultMissingError,
    RetryRefusedError,
    TraceError,
)
from dagster_dataops.foundation.places.opening import FORMS
from tests.each import each
from tests.execution.helpers import node, run, write_input
from tests.journals import FORMAT, FrameKind, frame, read_frames, read_journal, spans_frame
from tests.nodes import Manifest, NodeFolder, ResumePolicy, draft_of, existing
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


def _unfinished(
    tmp_path: Path, kind: str, format_: str, folder: NodeFolder | None = None
) -> tuple[Any, NodeFolder]:
    dataset, folder = _input(tmp_path), folder or node(tmp_path)
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


@pytest.mark.parametrize("kind", ["single", "thread", "outputs", "stream"])
def test_a_checkpoint_of_an_unknown_format_is_named_and_kept(tmp_path: Path, kind: str) -> None:
    dataset, folder = _unfinished(tmp_path, kind, OLDER)
    (checkpoint,) = existing(folder.checkpoints)
    before = _files(checkpoint.folder)
    assert (checkpoint.format, checkpoint.foreign, checkpoint.table.records) == (OLDER, True, 0)
    report = run(OPERATORS[kind](), dataset, folder)
    (note,) = [one for one in report.notes if "format" in one]
    place = folder.path / ".other_versions" / f"format-{OLDER}"
    assert f"of run older has format {OLDER}; this version reads {FORMAT}" in note
    assert str(place) in note
    assert report.manifest.resumed == 0
    assert _files(place / "checkpoint-1") == before
    assert not folder.checkpoints.exists()


@pytest.mark.parametrize("policy", ResumePolicy)
@pytest.mark.parametrize("kind", ["single", "thread", "outputs", "stream"])
def test_a_checkpoint_of_a_newer_version_is_refused_and_nothing_is_touched(
    tmp_path: Path, kind: str, policy: ResumePolicy
) -> None:
    dataset, folder = _unfinished(tmp_path, kind, NEWER)
    before = _files(folder.path)
    with pytest.raises(NewerVersionError) as caught:
        run(OPERATORS[kind](), dataset, folder, resume=policy)
    error = caught.value
    assert (error.path, error.found, error.reads) == (
        str(folder.checkpoints / "1"),
        NEWER,
        FORMAT,
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert _files(folder.path) == before


@pytest.mark.parametrize("magic", [b"DOJ2", b"DOJ9"])
def test_a_journal_of_another_form_is_refused(tmp_path: Path, magic: bytes) -> None:
    dataset, folder = _unfinished(tmp_path, "single", FORMAT)
    journal = folder.checkpoints / "1" / "journal"
    journal.write_bytes(journal.read_bytes().replace(b"DOJ1", magic))
    before = _files(folder.path)
    with pytest.raises(NewerVersionError, match=f"has format {magic.decode()}"):
        run(single(), dataset, folder)
    assert _files(folder.path) == before


def test_an_unknown_part_of_a_fingerprint_may_distinguish_runs(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", FORMAT)
    with first_attempt(folder.checkpoints / "1" / "journal") as attempt:
        attempt["fingerprint"]["colour"] = "red"
    before = _files(folder.path)
    with pytest.raises(NewerVersionError, match=f"has format {FORMAT} with colour"):
        run(single(), dataset, folder)
    assert _files(folder.path) == before


def test_other_unknown_facts_of_an_attempt_are_ignored(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", FORMAT)
    with first_attempt(folder.checkpoints / "1" / "journal") as attempt:
        attempt["weather"] = "fine"
    report = run(single(), dataset, folder, resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == _COUNT // 2


@contextmanager
def first_attempt(path: Path) -> Iterator[dict[str, Any]]:
    """Change the first attempt of a journal."""
    (first, *_) = [one for one in read_journal(path) if isinstance(one, AttemptEntry)]
    content = first.content or {}
    rest = path.read_bytes()[len(json_frame(FrameKind.ATTEMPT, content)) :]
    yield content
    path.write_bytes(json_frame(FrameKind.ATTEMPT, content) + rest)


def _machine(tmp_path: Path, number: int, store: FakeStore) -> NodeFolder:
    return node(machine(tmp_path / str(number), store) / "docs")


@pytest.mark.parametrize("kind", ["single", "thread", "outputs", "stream"])
def test_a_checkpoint_of_anunreadable_is_kept_on_an_object_store(tmp_path: Path, kind: str) -> None:
    """The journal's entries are deleted when a result is published."""
    store = FakeStore()
    dataset, _ = _unfinished(tmp_path, kind, OLDER, _machine(tmp_path, 1, store))
    folder = _machine(tmp_path, 2, store)
    report = run(OPERATORS[kind](), dataset, folder)
    (note,) = [one for one in report.notes if "format" in one]
    place = f"root/docs/node/.other_versions/format-{OLDER}"
    assert f"kept in memory://bucket/{place} when" in note
    kept = {key: found[0] for key, found in store.objects.items() if key.startswith(place)}
    assert f"{place}/checkpoint-1/journal" in kept
    assert kept == {
        f"{place}/{name}": data
        for name, data in _files(folder.other_versions / f"format-{OLDER}").items()
    }


def test_what_a_newer_version_has_written_to_an_object_store_is_refused_and_stays(
    tmp_path: Path,
) -> None:
    store = FakeStore()
    dataset, _ = _unfinished(tmp_path, "single", NEWER, _machine(tmp_path, 1, store))
    before = dict(store.objects)
    with pytest.raises(NewerVersionError, match=f"has format {NEWER}"):
        run(single(), dataset, _machine(tmp_path, 2, store))
    assert store.objects.items() >= before.items()
    with _version(NEWER), pytest.MonkeyPatch.context() as patch:
        patch.setitem(READERS, NEWER, READERS[FORMAT])
        report = run(single(), dataset, _machine(tmp_path, 3, store), resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == _COUNT // 2
    published = dict(store.objects)
    with pytest.raises(NewerVersionError, match=f"has format {NEWER}"):
        run(single(), dataset, _machine(tmp_path, 4, store), run="other")
    with pytest.raises(NewerVersionError, match="memory://bucket/root/docs/node/node_results"):
        load_result(_machine(tmp_path, 5, store))
    assert store.objects.items() >= published.items()


def test_a_result_of_anunreadable_is_kept_on_an_object_store(tmp_path: Path) -> None:
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


@each("format_", [7, 7.5, 10**15])
def test_a_checkpoint_whose_format_is_a_larger_number_is_refused(
    tmp_path: Path, format_: Any
) -> None:
    dataset, folder = _unfinished(tmp_path, "single", format_)
    before = _files(folder.path)
    with pytest.raises(NewerVersionError, match=f"has format {format_}"):
        run(single(), dataset, folder)
    assert _files(folder.path) == before
    shutil.rmtree(folder.path)


@each("format_", ["", 3, True, None, -7, [], {"a": 1}, "x" * 400])
def test_a_checkpoint_whose_format_is_no_name_is_named_and_kept(
    tmp_path: Path, format_: Any
) -> None:
    dataset, folder = _unfinished(tmp_path, "single", format_)
    (checkpoint,) = existing(folder.checkpoints)
    before = _files(checkpoint.folder)
    report = run(single(), dataset, folder)
    shown = "unknown" if format_ == "" else format_
    assert any(f"of run older has format {shown}; " in note for note in report.notes)
    (kept,) = (folder.path / ".other_versions").glob("*/checkpoint-1")
    assert _files(kept) == before
    shutil.rmtree(folder.path)


@each("journal", [b"", bytes(200), b"noise" * 40])
def test_a_checkpoint_without_a_readable_journal_is_named(tmp_path: Path, journal: bytes) -> None:
    dataset, folder = _unfinished(tmp_path, "single", FORMAT)
    path = folder.checkpoints / "1" / "journal"
    path.write_bytes(journal)
    report = run(single(), dataset, folder)
    assert any(
        f"the journal of the checkpoint {path.parent} is damaged" in one for one in report.notes
    )
    assert report.manifest.resumed == 0
    shutil.rmtree(folder.path)


@each(
    "content", [b"", b"null", b"[]", b'"x"', b"{}", b"{", b"[" * 9999, b"\xff", b"\xef\xbb\xbf{}"]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_result_whose_manifest_is_damaged_is_named_and_kept(
    tmp_path: Path, form: str, content: bytes
) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path).in_form(form)
    run(single(), dataset, folder, result_format=form)
    folder.manifest.write_bytes(content)
    result, errors = folder.result.read_bytes(), folder.errors.read_bytes()
    report = run(threads(), dataset, folder)
    place = folder.path / ".other_versions" / "damaged"
    (note,) = [one for one in report.notes if "damaged" in one]
    assert f"the manifest {folder.manifest} is damaged" in note
    assert str(place) in note
    assert _files(place) == {
        f"result.{form}": result,
        "error.jsonl": errors,
        "manifest.json": content,
        "kept": (place / "kept").read_bytes(),
    }
    assert not any("damaged" in note for note in run(threads(), dataset, folder).notes)
    shutil.rmtree(folder.path)


@each("content", [b"", b"null", b"{", b"older"])
def test_a_manifest_of_a_named_output_that_cannot_be_read_is_named_and_kept(
    tmp_path: Path, content: bytes
) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    run(routed(), dataset, folder)
    odd = folder.with_outputs(("odd", "even")).outputs["odd"]
    where = "damaged"
    if content == b"older":
        content = odd.manifest.read_bytes().replace(b'"6-', b'"5-')
        where = "format-5-little"
    odd.manifest.write_bytes(content)
    result = odd.result.read_bytes()
    report = run(routed(), dataset, folder, reuse_finished=False)
    place = folder.path / ".other_versions" / where
    (note,) = [note for note in report.notes if str(place) in note]
    assert str(odd.manifest if where == "damaged" else odd.result) in note
    assert (place / "odd.manifest.json").read_bytes() == content
    assert (place / "odd.jsonl").read_bytes() == result
    assert b'"6-' in odd.manifest.read_bytes()
    newer = odd.manifest.read_bytes().replace(b'"6-', b'"7-')
    odd.manifest.write_bytes(newer)
    with pytest.raises(NewerVersionError, match="odd_results.jsonl.json has format 7-"):
        run(routed(), dataset, folder, reuse_finished=False)
    assert odd.manifest.read_bytes() == newer
    shutil.rmtree(folder.path)


@each("format_", [None, "", 3, True])
def test_a_result_whose_format_is_no_name_is_named_and_kept(tmp_path: Path, format_: Any) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    run(single(), dataset, folder)
    noted = orjson.loads(folder.manifest.read_bytes())
    noted["made_from"]["format"] = format_
    folder.manifest.write_bytes(orjson.dumps(noted))
    result = folder.result.read_bytes()
    report = run(threads(), dataset, folder)
    shown = "unknown" if format_ == "" else format_
    assert any(f"has format {shown}; this version reads" in note for note in report.notes)
    place = folder.path / ".other_versions" / f"format-{shown}"
    assert (place / "result.jsonl").read_bytes() == result
    shutil.rmtree(folder.path)


def test_a_damaged_manifest_on_an_object_store_is_refused_and_its_objects_stay(
    tmp_path: Path,
) -> None:
    dataset, store = _input(tmp_path), FakeStore()
    run(single(), dataset, _machine(tmp_path, 1, store))
    store.put("root/docs/node/node_results.jsonl.json", b"{")
    before = dict(store.objects)
    with pytest.raises(ResultMissingError, match="manifest is damaged .*restore it, or delete it"):
        run(threads(), dataset, _machine(tmp_path, 2, store))
    assert before.items() <= store.objects.items()


def test_a_kept_checkpoint_is_used_by_its_version_when_it_is_put_back(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", OLDER)
    run(single(), dataset, folder)
    kept = folder.path / ".other_versions" / f"format-{OLDER}" / "checkpoint-1"
    folder.checkpoints.mkdir()
    kept.rename(folder.checkpoints / "1")
    with _version(OLDER), pytest.MonkeyPatch.context() as patch:
        patch.setitem(READERS, OLDER, READERS[FORMAT])
        report = run(single(), dataset, folder, run="again", resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == _COUNT // 2


@pytest.mark.parametrize("kind", ["single", "thread", "outputs"])
def test_a_version_with_a_new_format_goes_on_in_the_journal_of_the_one_before(
    tmp_path: Path, kind: str
) -> None:
    """Each attempt names the format of the entries behind it."""
    expected = run(OPERATORS[kind](), _input(tmp_path), node(tmp_path, "expected")).manifest
    dataset, folder = _unfinished(tmp_path, kind, FORMAT)
    with _version(NEWER), pytest.MonkeyPatch.context() as patch:
        patch.setitem(READERS, NEWER, _inverted)
        patch.setattr(journal_writer, "spans_frame", lambda entry: _inverting(spans_frame(entry)))
        _stops[0] = True
        with pytest.raises(BaseException, match="enough"):
            run(OPERATORS[kind](), dataset, folder, resume=ResumePolicy.AUTO)
        _stops[0] = False
        report = run(OPERATORS[kind](), dataset, folder, resume=ResumePolicy.AUTO)
    assert any(note.startswith("resuming: ") for note in report.notes), report.notes
    assert report.manifest.fingerprint == expected.fingerprint
    assert report.manifest.failed == expected.failed


_INVERTED: Final = 20  # a kind of frame


def _inverting(frames: bytes) -> bytes:
    """Write frames of spans in another form."""
    return b"".join(
        frame(_INVERTED, bytes([one.kind]) + one.payload[::-1])  # type: ignore[arg-type]
        for one in read_frames(frames)
    )


def _inverted(kind: int, payload: bytes, before: dict[int, bytes]) -> Any:
    if kind != _INVERTED:
        return READERS[FORMAT](kind, payload, before)
    return READERS[FORMAT](payload[0], payload[:0:-1], before)


def test_a_resumable_checkpoint_is_used_beside_one_of_anunreadable(tmp_path: Path) -> None:
    dataset, folder = _unfinished(tmp_path, "single", OLDER)
    _unfinished(tmp_path, "single", FORMAT)
    assert [one.format for one in existing(folder.checkpoints)] == [FORMAT, OLDER]
    report = run(single(), dataset, folder, resume=ResumePolicy.AUTO)
    assert report.manifest.resumed == _COUNT // 2
    assert (folder.path / ".other_versions" / f"format-{OLDER}" / "checkpoint-1").is_dir()


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_result_of_an_unknown_format_is_named_and_kept(tmp_path: Path, kind: str) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    operator = OPERATORS[kind]()
    with _version(OLDER):
        old = run(operator, dataset, folder, run="older")
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
    assert f"has format {OLDER}; this version reads {FORMAT}" in note
    place = folder.path / ".other_versions" / f"format-{OLDER}"
    assert (place / "manifest.json").read_bytes() == manifest
    for name, content in results.items():
        kept = place / f"{name or 'result'}.jsonl"
        files = sorted(kept.iterdir()) if kept.is_dir() else [kept]
        assert b"".join(file.read_bytes() for file in files) == content
    assert unreadable(folder.manifest) is None


@pytest.mark.parametrize("unfinished", [False, True])
def test_no_node_of_a_pipeline_runs_before_one_of_a_newer_version_is_refused(
    tmp_path: Path, unfinished: bool
) -> None:
    with pipeline("docs") as ppl:
        ppl.first = threads()
        ppl.second = single()
    with pipeline("docs") as alone:
        alone.second = single()
    with config.temporary(data_process_path=tmp_path):
        _stops[0] = unfinished
        try:
            with _version(NEWER), suppress(Exception):
                alone([{"n": n} for n in range(_COUNT)])
        finally:
            _stops[0] = False
        before = _files(tmp_path)
        with pytest.raises(NewerVersionError, match=f"second/.* has format {NEWER}"):
            ppl([{"n": 1}])
        assert before
        assert _files(tmp_path) == before


def test_plain_python_warns_of_what_it_does_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Python shows warnings by default, and no other lines of a log."""
    with pipeline("docs") as ppl:
        ppl.single = single()
    with config.temporary(data_process_path=tmp_path):
        with _version(OLDER):
            ppl([{"n": 1}])
        ppl([{"n": 1}])
    (line,) = [one for one in caplog.records if "has format" in one.getMessage()]
    assert line.levelname == "WARNING"


@pytest.mark.parametrize("kind", OPERATORS)
def test_a_result_of_a_newer_version_is_refused_by_name_and_nothing_is_touched(
    tmp_path: Path, kind: str
) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    with _version(NEWER):
        report = run(OPERATORS[kind](), dataset, folder, run="newer")
    before = _files(folder.path)
    for policy in ResumePolicy:
        with pytest.raises(NewerVersionError, match=f"has format {NEWER}, of a newer version"):
            run(OPERATORS[kind](), dataset, folder, resume=policy)
    for path in _results(report, folder).values():
        with pytest.raises(NewerVersionError, match=f"{path}.json has format {NEWER}"):
            load_result(path)
    assert _files(folder.path) == before


def test_a_publication_that_a_newer_version_has_begun_is_not_touched(tmp_path: Path) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    with _version(NEWER):
        run(single(), dataset, folder)
    folder.manifest.rename(draft_of(folder.manifest))
    before = _files(folder.path)
    with pytest.raises(NewerVersionError, match=r"\.json\.draft has format"):
        run(single(), dataset, folder)
    assert _files(folder.path) == before


def _results(report: Any, folder: NodeFolder) -> dict[str, Path]:
    if not report.outputs:
        return {"": folder.result}
    return {name: one.dataset.path for name, one in report.outputs.items()}


def test_failed_records_of_anunreadable_are_refused_with_the_reason(tmp_path: Path) -> None:
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


def test_unknown_fields_of_a_manifest_are_ignored(tmp_path: Path) -> None:
    """A later version of the same format has added them."""
    dataset, folder = _input(tmp_path), node(tmp_path)
    finished = run(single(), dataset, folder).manifest
    content = orjson.loads(folder.manifest.read_bytes())
    folder.manifest.write_bytes(orjson.dumps({**content, "colour": {"deep": [1]}}))
    before = _files(folder.path)
    assert Manifest.load(folder.manifest) == finished
    assert load_result(folder).rows == finished.rows_out
    report = run(single(), dataset, folder, reuse_finished=True)
    assert report.reused
    assert not [note for note in report.notes if "format" in note]
    retried = run(single(), dataset, folder, run="retry", resume=ResumePolicy.FAILED_RECORDS)
    assert retried.manifest.resumed == finished.rows_in - finished.failed
    assert before[folder.result.name] == folder.result.read_bytes()


def test_unknown_facts_about_an_output_are_ignored_and_later_ones_may_be_absent(
    tmp_path: Path,
) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    finished = run(routed(), dataset, folder).manifest
    content = orjson.loads(folder.manifest.read_bytes())
    for facts in content["outputs"].values():
        facts["colour"] = 1
        del facts["parted"]
    folder.manifest.write_bytes(orjson.dumps(content))
    assert Manifest.load(folder.manifest) == finished
    assert run(routed(), dataset, folder, reuse_finished=True).reused


def test_a_manifest_needs_no_field_that_version_0_2_0_does_not_write() -> None:
    """Give a new field a default. A field without one makes all earlier results unreadable."""
    needed = {
        one.name
        for one in fields(Manifest)
        if one.default is MISSING and one.default_factory is MISSING
    }
    assert needed == {
        *("operator", "rows_in", "rows_out", "dropped", "failed", "resumed", "size_bytes"),
        *("modified_ns", "fingerprint", "run", "attempts", "seconds", "made_from"),
    }


@pytest.mark.parametrize(("format_", "error"), [(OLDER, TraceError), (NEWER, NewerVersionError)])
def test_a_trace_through_a_result_of_an_unreadable_format_is_refused(
    tmp_path: Path, format_: str, error: type[Exception]
) -> None:
    dataset, folder = _input(tmp_path), node(tmp_path)
    with _version(format_):
        run(single(), dataset, folder)
    with pytest.raises(error, match=f"has format {format_}"):
        trace(folder.path, line=1)


def test_one_format_is_newer_than_another() -> None:
    newer = [NEWER, f"7-{sys.byteorder}", "100-big", f"{FORMAT} with colour", "DOJ2"]
    newer += ["7", "7.5", "07-little", "7.0-little", "9" * 5000, f"{'9' * 5000}-little"]
    others = ["", FORMAT, OLDER, "5-little", "6-big", "6-middle", "x", "-", "6", "1 with colour"]
    others += [
        "-7",
        "True",
        "None",
        "1e+30",
        f"{'0' * 5000}5-little",
        f"{FORMAT}\n",
        "\u0667-little",
    ]
    assert [one for one in (*newer, *others) if is_newer(one)] == newer
    assert [one for one in (*newer, *others) if is_read(one)] == [FORMAT]


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
        (json_frame(FrameKind.ATTEMPT, {"fingerprint": {"format": 3}}), "3"),
        (json_frame(FrameKind.ATTEMPT, {"fingerprint": {"format": None}}), "None"),
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
