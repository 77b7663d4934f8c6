"""What became of records is used again for other inputs, and never for other records."""

import os
import pickle
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import JsonlDataset, RunReport, load_result
from dagster_dataops.checkpoints.resume import known_outcomes, record_cache
from dagster_dataops.checkpoints.resume.record_cache import RecordCache
from dagster_dataops.checkpoints.resume.start_decision import OutcomeSource
from dagster_dataops.data import data_register
from dagster_dataops.errors import (
    OperatorOptionError,
    OutageError,
    RecordError,
    RunStoppedError,
    StorageError,
)
from tests.examples import at_most
from tests.execution.helpers import (
    MODES,
    Listener,
    error_rows,
    expected_failures,
    expected_results,
    lines,
    node,
    outcome_of,
    plan,
    run,
    turn_around,
    write_input,
)
from tests.faults.crashing import DyingAfter, in_child
from tests.journals import (
    Checkpoint,
    FinishedSpan,
    JournalWriter,
    SegmentWriter,
    SpansEntry,
    line_digest,
)
from tests.nodes import (
    CheckpointContent,
    NodeFolder,
    ResumePolicy,
    existing,
    published,
    write_records,
)

_KINDS = ("keep", "replace", "expand", "drop", "fail")
Rows = list[dict[str, Any]]


def _ask(record: dict[str, Any], log: str) -> Any:
    """Do what the record says, and write down that it was asked for."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, f"{record['n']}\n".encode())
    os.close(descriptor)
    return outcome_of(record)


@data_register("data.reuse_tests", _reuse_outcomes=True, _stop_after_failures=0)
def asked(record, log, tag=""):
    return _ask(record, log)


@data_register("data.reuse_tests", _reuse_outcomes=True, _stop_after_failures=0)
async def asked_async(record, log, tag=""):
    return _ask(record, log)


class _Node:
    """One operator's folder, and what it asks for."""

    def __init__(self, path: Path, operator: Any = asked) -> None:
        self.folder = node(path)
        self._operator = operator
        self._path = path
        self._log = path / "asked.txt"
        self.notes: list[str] = []

    def run(self, records: Rows | JsonlDataset, mode: str = "single", **given: Any) -> RunReport:
        """Run over records, as another node's result unless they are a dataset."""
        dataset = records
        if not isinstance(records, JsonlDataset):
            dataset = write_records(self._path / "input.jsonl", records, "test")
        context = {
            name: given.pop(name) for name in ("resume", "run", "should_stop") if name in given
        }
        listener = Listener()
        options = {"log": str(self._log), "_concurrency_mode": mode, "_max_workers": 2, **given}
        operator = self._operator(**options)
        self._log.unlink(missing_ok=True)
        try:
            return run(
                operator,
                dataset,
                self.folder,
                **{"resume": ResumePolicy.AUTO, "progress": listener, **context},
            )
        finally:
            self.notes = listener.notes

    @property
    def asked(self) -> list[int]:
        """Numbers of the records that the latest run asked for."""
        return [int(line) for line in self._log.read_text().split()] if self._log.exists() else []

    def check(self, records: Rows) -> None:
        """The published result and its error file are those of an undisturbed run."""
        assert self.folder.result.read_bytes() == expected_results(records)
        assert [row["index"] for row in error_rows(self.folder)] == expected_failures(records)
        assert [row["line"] for row in error_rows(self.folder)] == [
            place + 1 for place in expected_failures(records)
        ]
        assert not self.folder.checkpoints.exists()


@pytest.fixture
def this(tmp_path: Path) -> _Node:
    return _Node(tmp_path)


def _failing(records: Iterable[dict[str, Any]]) -> list[int]:
    return [record["n"] for record in records if record["do"] == "fail"]


def _changed(records: Rows) -> tuple[Rows, Rows]:
    """Return the records with some left out, edited, moved and added; and the new ones alone."""
    edited = {**records[3], "n": 103, "text": "edited"}
    added = [{"n": 200 + n, "do": kind, "text": "added"} for n, kind in enumerate(_KINDS[:4])]
    rows = [records[-1], *records[:3], edited, added[0], *records[5:-1], *added[1:]]
    return rows, [edited, *added]


@pytest.mark.parametrize("after", MODES)
@pytest.mark.parametrize("before", MODES)
def test_only_new_or_failed_records_of_a_changed_input_are_called(
    tmp_path: Path, before: str, after: str
) -> None:
    this = _Node(tmp_path, asked_async if "async" in {before, after} else asked)
    records = plan(_KINDS * 8)
    this.run(records, before)
    this.check(records)
    rows, new = _changed(records)
    report = this.run(rows, after, run="second")
    this.check(rows)
    assert sorted(this.asked) == sorted(
        [record["n"] for record in new] + _failing(set_aside(rows, new))
    )
    assert report.rows_resumed == len(rows) - len(this.asked)
    assert report.resumed_from == ("test",)
    kept = len(rows) - len(this.asked)
    assert f"{kept} of {len(rows)} records unchanged since run test" in this.notes[0]


def set_aside(rows: Rows, new: Rows) -> Rows:
    """Return the rows that are not new."""
    return [row for row in rows if row not in new]


def test_an_unchanged_input_is_not_processed_again_by_default(this: _Node) -> None:
    records = plan(("keep", "drop", "expand") * 5)
    this.run(records)
    this.run(records, run="second")
    assert this.asked == []
    this.check(records)
    this.run(records, run="third", resume=ResumePolicy.NEVER)
    assert this.asked == list(range(15))
    this.check(records)


def test_only_new_lines_of_a_growing_file_are_called(tmp_path: Path, this: _Node) -> None:
    """It is no result of ours, so that nothing but its lines tells what is in it."""
    records = plan(("keep", "expand", "drop") * 4)
    for count in (3, 7, 12):
        this.run(write_input(tmp_path / "grows.jsonl", records[:count]))
        this.check(records[:count])
        assert len(this.asked) in {3, 4, 5}


def test_white_space_around_a_line_and_blank_lines_make_no_other_record(
    tmp_path: Path, this: _Node
) -> None:
    records = plan(("keep", "expand", "drop") * 2)
    this.run(records)
    path = tmp_path / "spaced.jsonl"
    path.write_bytes(b"\n \n".join(b"  " + line + b"\r" for line in lines(records).splitlines()))
    this.run(JsonlDataset.of_file(path))
    assert this.asked == []
    assert this.folder.result.read_bytes() == expected_results(records)


@pytest.mark.parametrize("mode", MODES)
def test_records_settled_by_an_unfinished_run_over_another_input_are_reused(
    tmp_path: Path, mode: str
) -> None:
    this = _Node(tmp_path, asked_async if mode == "async" else asked)
    this.run(plan(("keep",) * 10))
    first = [{**record, "text": "other"} for record in plan(("keep", "expand", "drop") * 10)]
    first[22]["do"] = "fail"
    with pytest.raises(RecordError):
        this.run(first, mode, run="stopped", _ignore_errors=False)
    stopped = CheckpointContent.read(next(this.folder.checkpoints.glob("*")))
    places = list(accumulate(map(len, lines(first).splitlines(keepends=True)), initial=0))
    settled = {places.index(span.start) for span, _, _ in stopped.table.ordered()}
    assert len(settled) > 10
    rows = [*plan(("keep",) * 4), *first[5:], {"n": 99, "do": "expand", "text": "new"}]
    this.run(rows, run="third")
    assert sorted(this.asked) == [*(n for n in range(5, 30) if n not in settled), 99]
    this.check(rows)
    assert "unchanged since run test and stopped" in this.notes[0]


def test_other_options_and_other_code_ask_for_everything(
    this: _Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = plan(("keep", "drop") * 4)
    this.run(records)
    this.run(records, tag="other")
    assert this.asked == list(range(8))
    monkeypatch.setitem(vars(asked(log="x").__dataops__.spec), "code_version", "edited")
    this.run(records[2:], tag="other")
    assert this.asked == list(range(2, 8))


def test_across_code_keeps_old_records_with_a_log_line(
    this: _Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = plan(("keep", "drop") * 4)
    this.run(records[1:], run="old")
    spec = asked(log="x").__dataops__.spec
    before = spec.code_version
    monkeypatch.setitem(vars(spec), "code_version", "edited")
    report = this.run(records, run="new", resume=ResumePolicy.ACROSS_CODE)
    assert this.asked == [0]
    assert [run["run"] for run in report.manifest.kept_from] == ["old"]
    assert [run["code"] for run in report.manifest.kept_from] == [before]
    this.check(records)
    this.run(records, run="strict")
    assert this.asked == list(range(8)), "what old code made is not taken unasked"


def test_outcomes_stored_without_the_setting_are_computed_again(this: _Node) -> None:
    records = plan(("keep", "drop", "fail") * 3)
    this.run(records, _reuse_outcomes=False)
    found = published(this.folder)
    assert found is not None
    assert not found[1].outcomes
    this.run(records[1:])
    assert this.asked == list(range(1, 9))
    this.run(records[1:], _reuse_outcomes=False)
    assert not found[1].outcomes
    this.check(records[1:])
    for count, reuse in ((3, True), (2, False)):  # without failures only the setting makes the map
        this.run(plan(("keep",) * count), _reuse_outcomes=reuse)
        assert this.folder.kept.exists() is reuse


def test_an_edited_result_is_not_used_for_outcomes(this: _Node) -> None:
    records = plan(("keep",) * 6)
    this.run(records)
    data = this.folder.result.read_bytes()
    this.folder.result.write_bytes(data.replace(b'"kept":true', b'"kept":trux', 1))
    this.run(records[1:])
    assert this.asked == list(range(1, 6))
    this.check(records[1:])


def test_a_damaged_result_is_detected_and_made_again(this: _Node) -> None:
    records = plan(("keep",) * 6)
    this.run(records)
    path = this.folder.result
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[data.index(b'"n":3') + 4] = ord("7")
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert published(this.folder)
    report = this.run([*records[1:], {"n": 77, "do": "drop", "text": ""}])
    assert sorted(this.asked) == [3, 77]
    assert report.rows_resumed == 4
    assert path.read_bytes() == expected_results(records[1:])


def test_a_journal_kept_for_another_result_is_not_used(this: _Node) -> None:
    """As after a loss of power, or where files were copied: the places would be wrong."""
    records = plan(("keep", "expand") * 6)
    this.run(records[::-1])
    other = this.folder.kept.read_bytes()
    this.run(records)
    this.folder.kept.write_bytes(other)
    report = this.run(records[:-1])
    assert this.asked == list(range(11))
    assert report.notes == ()
    this.check(records[:-1])


def test_outcomes_that_were_found_stay_found_though_the_input_is_touched(
    tmp_path: Path, this: _Node
) -> None:
    """A run that looked them up was stopped; touching the file changes none of its lines."""
    records = plan(("keep", "drop") * 10)
    path = tmp_path / "input.jsonl"
    this.run(write_input(path, records[:15]))
    with pytest.raises(RunStoppedError):
        this.run(write_input(path, records), run="stopped", should_stop=lambda: "told to")
    os.utime(path, ns=(1, 1))
    report = this.run(JsonlDataset.of_file(path))
    assert report.notes[0].startswith("resuming: ")
    assert report.manifest.resumed >= 15
    this.check(records)


def test_failed_records_are_retried_alone_and_all_outcomes_stay_known(this: _Node) -> None:
    records = plan(_KINDS * 3)
    this.run(records)
    this.run(records, run="second", resume=ResumePolicy.FAILED_RECORDS)
    assert this.asked == _failing(records)
    this.check(records)
    rows = [record for record in records[2:] if record["do"] != "fail"]
    this.run(rows, run="third")
    assert this.asked == []
    this.check(rows)


def test_an_input_without_known_records_leaves_no_files(this: _Node) -> None:
    this.run(plan(("keep",) * 3))
    strangers = [{**record, "text": "stranger"} for record in plan(("keep",) * 4)]
    this.run(strangers)
    assert this.asked == [0, 1, 2, 3]
    assert this.notes == []
    this.check(strangers)


_MOMENTS = {
    "before the index is filled": (RecordCache, "_fill", 1, True),
    "after a record is found": (RecordCache, "find", 1, False),
    "before the runs are journalled": (JournalWriter, "attempt", 2, True),
    "before records are settled": (Checkpoint, "journal", 1, True),
    "after some records are settled": (Checkpoint, "journal", 1, False),
    "before the index is deleted": (RecordCache, "close", 1, True),
}


@pytest.mark.parametrize("moment", _MOMENTS)
def test_a_death_while_looking_up_costs_no_outcome(this: _Node, moment: str) -> None:
    records = plan(("keep", "expand", "drop") * 4)
    this.run(records)
    rows = [*records[2:], {"n": 50, "do": "keep", "text": "new"}]

    def die() -> None:
        patch = pytest.MonkeyPatch()
        owner, name, calls, before = _MOMENTS[moment]
        patch.setattr(owner, name, DyingAfter(getattr(owner, name), calls, before=before))
        patch.setattr(known_outcomes, "_BATCH_BYTES", 120)
        this.run(rows, run="killed")

    assert in_child(die) == DyingAfter.STATUS
    this.run(rows, run="next")
    assert this.asked == [50]
    this.check(rows)


@pytest.mark.slow
def test_a_damaged_kept_journal_never_mixes_up_outcomes(tmp_path: Path, this: _Node) -> None:
    records = plan(("keep", "expand", "drop", "replace") * 3)
    this.run(records)
    whole = this.folder.kept.read_bytes()
    result = this.folder.result.read_bytes()
    rows = records[3:]
    for at in range(0, len(whole), 7):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :]):
            again = _Node(tmp_path / f"{at}-{len(damaged)}")
            _copy(this.folder, again.folder, result, damaged)
            again.run(rows)
            again.check(rows)


def _copy(source: NodeFolder, target: NodeFolder, result: bytes, kept: bytes) -> None:
    target.path.mkdir(parents=True)
    target.result.write_bytes(result)
    status = source.result.stat()
    os.utime(target.result, ns=(status.st_atime_ns, status.st_mtime_ns))
    target.manifest.write_bytes(source.manifest.read_bytes())
    target.kept.write_bytes(kept)


_ROWS = st.lists(
    st.builds(
        lambda n, do: {"n": n, "do": do, "text": "x" * n},
        st.integers(0, 6),
        st.sampled_from(_KINDS),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=at_most(60), deadline=None)
@given(inputs=st.lists(_ROWS, min_size=2, max_size=4), modes=st.data())
def test_consecutive_inputs_give_the_results_of_each_input_alone(
    tmp_path_factory: pytest.TempPathFactory, inputs: list[Rows], modes: st.DataObject
) -> None:
    this = _Node(tmp_path_factory.mktemp("inputs"), asked_async)
    before: Rows = []
    for number, records in enumerate(inputs):
        mode = modes.draw(st.sampled_from(["single", "thread", "async"]))
        this.run(records, mode, run=f"run{number}")
        this.check(records)
        known = [record for record in before if record["do"] != "fail"]
        unknown = [record["n"] for record in records if record not in known]
        assert Counter(this.asked) == Counter(unknown)
        before = records


def test_operators_over_all_records_have_no_outcome_of_one() -> None:
    with pytest.raises(OperatorOptionError, match="_reuse_outcomes.*no outcome per record"):
        turn_around(_reuse_outcomes=True)


def test_a_handle_of_the_result_stays_valid(this: _Node) -> None:
    records = plan(("keep",) * 4)
    this.run(records)
    held = load_result(this.folder).path.open("rb")
    this.run(records[1:])
    with held:
        assert held.read() == expected_results(records)


def test_a_run_started_without_the_setting_resumes_with_it(tmp_path: Path, this: _Node) -> None:
    """Spans of many records, with failures among them, lie beside those of one."""
    records = plan(_KINDS * 6)
    records[26]["do"] = "exit"
    with pytest.raises(RecordError):
        this.run(
            [*records[:25], {**records[25], "do": "nonsense"}, *records[26:]],
            "thread",
            run="begun",
            _ignore_errors=False,
            _reuse_outcomes=False,
        )
    dataset = JsonlDataset.of_file(tmp_path / "input.jsonl")
    rows = [orjson.loads(line) for line in dataset.path.read_bytes().splitlines()]
    this.run(rows, run="on")
    this.check(rows)
    this.run(rows[1:], run="changed")
    this.check(rows[1:])


def test_records_that_old_code_made_are_known_as_such_after_a_kill(
    this: _Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = plan(("keep", "drop") * 4)
    this.run(records[1:], run="old")
    monkeypatch.setitem(vars(asked(log="x").__dataops__.spec), "code_version", "edited")

    def die() -> None:
        patch = pytest.MonkeyPatch()
        settle = DyingAfter(Checkpoint.journal, 1, before=False)
        patch.setattr(Checkpoint, "journal", settle)
        this.run(records, run="killed", resume=ResumePolicy.ACROSS_CODE)

    assert in_child(die) == DyingAfter.STATUS
    (content,) = existing(this.folder.checkpoints)
    assert content.table.records == 7
    assert [run["run"] for run in content.kept_from] == ["old"]
    this.run(records, run="strict")
    assert this.asked == list(range(8))


@pytest.mark.parametrize("mode", MODES)
def test_known_outcomes_between_failing_calls_do_not_hide_an_outage(
    tmp_path: Path, mode: str
) -> None:
    this = _Node(tmp_path, asked_async if mode == "async" else asked)
    records = plan(("keep", "fail") * 30)
    this.run([record for record in records if record["do"] == "keep"])
    with pytest.raises(OutageError, match="4 calls failed"):
        this.run(records, mode, run="second", _stop_after_failures=4, _max_workers=1)
    assert len(this.asked) == 4


@pytest.mark.parametrize("lost", [False, True], ids=["killed", "power lost"])
def test_a_run_that_is_resumed_looks_up_the_rest(this: _Node, lost: bool) -> None:
    """After a loss of power the journal may be on disk, and the file with the outcomes not."""
    records = plan(("keep", "expand", "drop") * 4)
    this.run(records, run="first")

    def die() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(known_outcomes, "_BATCH_BYTES", 120)
        patch.setattr(Checkpoint, "journal", DyingAfter(Checkpoint.journal, 1, before=False))
        this.run(records[1:], run="killed")

    assert in_child(die) == DyingAfter.STATUS
    if lost:
        (segment,) = this.folder.checkpoints.glob("*/segment-*")
        segment.unlink()
    report = this.run(records[1:], run="next")
    assert this.asked == []
    assert report.resumed_from == ("first", "killed")
    assert report.rows_resumed == 11
    assert this.notes[0] == (
        "resuming: 4 of 11 records settled by run killed and 1 before it; "
        "7 of 11 records unchanged since run first: their outcomes are kept"
    )
    this.check(records[1:])


def _source(folder: Path, outcomes: dict[bytes, bytes], at: int = 0) -> OutcomeSource:
    """Return a checkpoint with the outcomes of lines, from byte ``at`` of its segment."""
    folder.mkdir()
    journal, segment = JournalWriter(folder / "journal"), SegmentWriter(folder, 1)
    segment.offset = at
    for line, output in outcomes.items():
        span = FinishedSpan.of(
            0,
            len(line),
            records=1,
            emitted=1,
            dropped=0,
            failed=0,
            output=output,
            errors=b"",
        ).span
        place = segment.append(output)
        journal.spans(SpansEntry.of(1, place, [span], [line_digest(line)]))
    segment.close()
    content = CheckpointContent.read(folder)
    return OutcomeSource(content, folder / "journal", content.segments)


def test_an_outcome_is_found_by_its_line_in_the_first_source_that_has_it(tmp_path: Path) -> None:
    sources = [
        _source(tmp_path / "1", {b"a": b"new"}),
        _source(tmp_path / "2", {b"a": b"old", b"b": b"other"}, at=5 << 30),
    ]
    (tmp_path / "index").write_bytes(b"of a run that was killed")
    with closing(RecordCache(tmp_path / "index", sources)) as cache:
        found = [cache.find(line) for line in (b"a", b" b\r\n", b"c")]
    assert [one and (one[0], one[2]) for one in found] == [(0, b"new"), (1, b"other"), None]
    assert not (tmp_path / "index").exists()


def test_a_disk_that_refuses_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {**record_cache._SETTINGS, "max_page_count": "3"}
    monkeypatch.setattr(record_cache, "_SETTINGS", settings)
    source = _source(tmp_path / "1", {b"%d" % number: b"x" for number in range(1_000)})
    with pytest.raises(StorageError, match="index.*write the index of outcomes.*full") as found:
        RecordCache(tmp_path / "index", [source])
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
