"""Tests of retries of failed records: the calls, the bytes of the result, and refusals."""

import itertools
import math
import os
import random
import shutil
import signal
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import JsonlDataset, RunReport
from dagster_dataops.checkpoints.journal import kept_journal
from dagster_dataops.checkpoints.resume import retry_failed
from dagster_dataops.checkpoints.resume.retry_failed import seeded_by_result
from dagster_dataops.data import data_register
from dagster_dataops.datasets import writer
from dagster_dataops.errors import RetryRefusedError, RunStoppedError, StorageError
from dagster_dataops.execution.workplaces import range_worker
from tests.examples import at_most
from tests.execution.helpers import (
    MODES,
    SMALL,
    TINY,
    USUAL,
    SpanSizes,
    act,
    cut_by,
    error_rows,
    lines,
    node,
    run,
    run_over,
    turn_around,
    write_input,
)
from tests.faults.crashing import in_child
from tests.journals import content_interval, iterate_lines
from tests.nodes import Manifest, ResumePolicy, commit, content_digest, existing, published
from tests.registries import OperatorRegistry

RETRY = ResumePolicy.FAILED_RECORDS
NEVER_FAILS = 1 << 30
_NUMBERS = itertools.count()
_SKETCHED: list[int] = []
_SELECTIONS: Any = data_register.new_group("retrying_selections")
_CONTEXT = ("run", "reuse_finished", "should_stop")


def _work(record: dict[str, Any], switch: str) -> Any:
    """Fail until round ``record["until"]``, then act on ``record["do"]``.

    The folder ``switch`` holds the round, the record at which to die, and the calls.
    """
    home = Path(switch)
    with (home / "calls").open("a") as calls:
        calls.write(f"{record['n']}\n")
    if (home / f"die-{record['n']}").exists():
        os.kill(int((home / "pid").read_text()), signal.SIGKILL)
        time.sleep(60)  # the parent of a worker; the worker ends with it
    if record["until"] > int((home / "round").read_text()):
        msg = f"not before round {record['until']}"
        raise ValueError(msg)
    match record["do"]:
        case "drop":
            return []
        case "expand":
            return [{"n": record["n"], "part": part} for part in range(record["n"] % 3 + 1)]
    return {"n": record["n"], "text": "é" * record["n"]}


@data_register("data.retrying", _stop_after_failures=0)
def flaky(record, switch=""):
    return _work(record, switch)


@data_register("data.retrying", _stop_after_failures=0)
async def flaky_async(record, switch=""):
    return _work(record, switch)


class Rounds:
    """An operator whose records fail until their round, and its node."""

    def __init__(self, home: Path, content: bytes, mode: str = "single", workers: int = 2) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self.folder = node(home)
        (home / "input.jsonl").write_bytes(content)
        self.dataset = JsonlDataset.of_file(home / "input.jsonl")
        chosen = flaky_async if mode == "async" else flaky
        self.operator = chosen(
            switch=str(home),
            _concurrency_mode=mode,
            _max_workers=1 if mode == "single" else workers,
        )
        self.begin(0)

    def begin(self, number: int) -> None:
        (self.home / "round").write_text(str(number))
        (self.home / "calls").write_text("")

    @property
    def calls(self) -> list[int]:
        return sorted(map(int, (self.home / "calls").read_text().split()))

    def run(self, resume: ResumePolicy = RETRY, **context: Any) -> RunReport:
        context = {"run": f"run {next(_NUMBERS)}", **context}
        return run(self.operator, self.dataset, self.folder, resume=resume, **context)

    def killed_at(self, number: int, resume: ResumePolicy = RETRY, **context: Any) -> list[int]:
        """Run until record ``number`` is begun, at which the process is killed.

        Returns:
            The records that are not settled then.
        """
        mark = self.home / f"die-{number}"
        mark.touch()

        def die() -> None:
            (self.home / "pid").write_text(str(os.getpid()))
            with pytest.MonkeyPatch.context() as patch:
                cut_by(patch, TINY)
                self.run(resume, **context)

        assert in_child(die) == -signal.SIGKILL
        mark.unlink()
        return self.unsettled()

    def unsettled(self) -> list[int]:
        """Return the records that the newest checkpoint leaves to do."""
        table = existing(self.folder.checkpoints)[0].table
        with self.dataset.path.open("rb") as file:
            gaps = table.gaps(content_interval(self.dataset.path))
            return [orjson.loads(x.text)["n"] for x in iterate_lines(file.fileno(), gaps)]


def plan_rounds(delays: Iterable[int], kinds: Iterable[str] = ()) -> list[dict[str, Any]]:
    kinds = list(kinds) or ["keep"]
    return [{"n": n, "until": until, "do": kinds[n % len(kinds)]} for n, until in enumerate(delays)]


def expected(records: Iterable[dict[str, Any]], number: int, home: Path) -> bytes:
    """Return the result that an undisturbed run in round ``number`` publishes."""
    emitted: list[Any] = []
    for record in records:
        if record["until"] <= number:
            home.mkdir(exist_ok=True)
            (home / "round").write_text(str(NEVER_FAILS))
            made = _work(record, str(home))
            emitted += made if isinstance(made, list) else [made]
    return lines(emitted)


def check(rounds: Rounds, records: list[dict[str, Any]], number: int, report: RunReport) -> None:
    """Check bytes, error rows and counts against an undisturbed run's."""
    wanted = expected(records, number, rounds.home / "reference")
    assert rounds.folder.result.read_bytes() == wanted
    failing = [record["n"] for record in records if record["until"] > number]
    rows = error_rows(rounds.folder)
    assert [row["index"] for row in rows] == failing
    assert [row["input"] for row in rows] == [records[n] for n in failing]
    source = rounds.dataset.path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert [orjson.loads(source[row["line"] - 1]) for row in rows] == [records[n] for n in failing]
    manifest = report.manifest
    assert (manifest.rows_in, manifest.failed) == (len(records), len(failing))
    assert manifest.rows_out == wanted.count(b"\n") == report.dataset.rows
    done = [record for record in records if record["until"] <= number]
    assert manifest.dropped == sum(record["do"] == "drop" for record in done)
    assert report.error_path == (rounds.folder.errors if failing else None)
    assert rounds.folder.kept.exists() == manifest.mapped >= bool(failing)
    assert not rounds.folder.checkpoints.exists()


_TENTH = random.Random(3).choices([0, 1, 2, 3], weights=(90, 4, 3, 3), k=200)
_KINDS = ["keep", "expand", "drop", "keep", "expand"]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [TINY, SMALL, USUAL], ids=["tiny", "small", "usual"])
@pytest.mark.parametrize("mode", MODES)
def test_three_retries_call_only_failed_records_and_end_in_the_bytes_of_an_undisturbed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, sizes: SpanSizes
) -> None:
    cut_by(monkeypatch, sizes)
    records = plan_rounds(_TENTH, _KINDS)
    rounds = Rounds(tmp_path / "home", lines(records), mode)
    report = rounds.run(ResumePolicy.AUTO, run="round 0")
    check(rounds, records, 0, report)
    for number in (1, 2, 3):
        rounds.begin(number)
        left = [record["n"] for record in records if record["until"] >= number]
        report = rounds.run(run=f"round {number}")
        assert rounds.calls == left
        assert report.manifest.resumed == len(records) - len(left)
        assert not report.reused
        check(rounds, records, number, report)
    assert report.manifest.attempts == [f"round {number}" for number in range(4)]
    last = _TENTH.count(3)
    (note,) = report.notes
    assert note.startswith(f"retrying {last} failed records of run round 2; the other {200 - last}")


@pytest.mark.parametrize(
    "delays",
    [[1, 0, 0], [0, 0, 1], [1], [1, 1, 1], [0, 1, 1, 0], [1, 0, 1, 0, 1], [1, 1, 0, 1, 1]],
    ids=str,
)
@pytest.mark.parametrize("kinds", [["keep"], ["drop"], ["expand"], ["drop", "expand", "keep"]])
@pytest.mark.parametrize("mode", MODES)
def test_retried_results_are_inserted_at_the_places_of_failed_records(
    tmp_path: Path, mode: str, kinds: list[str], delays: list[int]
) -> None:
    records = plan_rounds(delays, kinds)
    rounds = Rounds(tmp_path / "home", lines(records), mode)
    check(rounds, records, 0, rounds.run(ResumePolicy.AUTO))
    rounds.begin(1)
    check(rounds, records, 1, rounds.run())
    assert rounds.calls == [n for n, until in enumerate(delays) if until]


def messy(records: list[dict[str, Any]], blanks: list[bytes], *, bom: bool, end: bool) -> bytes:
    """Return ``records`` with blank lines before, between and after them."""
    parts = [b"\xef\xbb\xbf" if bom else b""]
    for place, record in enumerate(records):
        parts += [blanks[place % len(blanks)] if blanks else b"", orjson.dumps(record), b"\n"]
    content = b"".join(parts)
    return content + (blanks[0] if blanks else b"") if end else content.removesuffix(b"\n")


@pytest.mark.parametrize("end", [True, False], ids=["newline", "no newline"])
@pytest.mark.parametrize("bom", [True, False], ids=["bom", "plain"])
@pytest.mark.parametrize("mode", MODES)
def test_blank_lines_a_byte_order_mark_and_a_last_line_without_newline_move_nothing(
    tmp_path: Path, mode: str, bom: bool, end: bool
) -> None:
    records = plan_rounds([1, 0, 1, 1, 0, 0, 2], _KINDS)
    content = messy(records, [b"\n", b"", b" \r\n\n"], bom=bom, end=end)
    rounds = Rounds(tmp_path / "home", content, mode)
    for number in range(3):
        rounds.begin(number)
        check(rounds, records, number, rounds.run(RETRY if number else ResumePolicy.AUTO))
        assert rounds.calls == [r["n"] for r in records if not number or r["until"] >= number]


@pytest.mark.parametrize("policy", [RETRY, ResumePolicy.AUTO], ids=["retry", "auto"])
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_retry_resumes_and_repeats_no_call(
    tmp_path: Path, mode: str, policy: ResumePolicy
) -> None:
    records = plan_rounds([0, 1, 2, 0, 1, 1, 0, 2, 1, 1] * 2, _KINDS)
    rounds = Rounds(tmp_path / "home", lines(records), mode, workers=1)
    rounds.run(ResumePolicy.AUTO, run="first")
    before = rounds.folder.result.read_bytes()
    rounds.begin(1)
    left = rounds.killed_at(15, run="killed")
    assert {15, 18, 19} <= set(left) < {record["n"] for record in records if record["until"]}
    assert rounds.folder.result.read_bytes() == before
    rounds.begin(1)
    report = rounds.run(policy, run="next")
    assert rounds.calls == left
    assert report.manifest.attempts == ["first", "killed", "next"]
    assert f"resuming: {20 - len(left)} records settled by run killed" in report.notes[-1]
    check(rounds, records, 1, report)


def test_a_retry_killed_time_and_again_comes_to_an_end(tmp_path: Path) -> None:
    records = plan_rounds([1, 0] * 10, _KINDS)
    rounds = Rounds(tmp_path / "home", lines(records))
    rounds.run(ResumePolicy.AUTO)
    rounds.begin(1)
    for at in range(0, 20, 4):
        assert rounds.killed_at(at) == list(range(at, 20, 2))
    check(rounds, records, 1, rounds.run())
    assert rounds.calls == sorted([*range(0, 20, 2), *range(0, 20, 4)])


@pytest.mark.parametrize("mode", MODES)
def test_only_failures_of_an_unfinished_run_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    records = plan_rounds([0, 0, 1, 0, 1, 1, 0, 0, 2, 0] * 3, _KINDS)
    rounds = Rounds(tmp_path / "home", lines(records), mode, workers=1)
    cut_by(monkeypatch, SMALL)
    left = rounds.killed_at(25, ResumePolicy.AUTO, run="killed")
    failed = [n for n, record in enumerate(records) if record["until"] and n not in left]
    assert failed
    rounds.begin(1)
    again = rounds.killed_at(28, run="retry")
    assert set(again) & set(failed) < set(failed)
    rounds.begin(1)
    report = rounds.run(run="next")
    assert rounds.calls == again
    check(rounds, records, 1, report)
    assert report.manifest.attempts == ["killed", "retry", "next"]


def test_spans_of_many_records_are_split_so_that_only_the_failed_ones_are_redone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_worker, "_SPAN_SECONDS", math.inf)
    records = plan_rounds([1 if n % 7 == 3 else 0 for n in range(100)], _KINDS)
    rounds = Rounds(tmp_path / "home", lines(records))
    (rounds.home / "die-90").touch()
    (rounds.home / "pid").write_text("0")

    @data_register("data.retrying_split", _concurrency_mode="single")
    def interrupted(record, switch=""):
        if record["n"] == 90 and (Path(switch) / "die-90").exists():
            raise KeyboardInterrupt
        return _work({**record}, switch)

    rounds.operator = interrupted(switch=str(rounds.home))
    with pytest.raises(KeyboardInterrupt):
        rounds.run(ResumePolicy.AUTO, run="cut")
    assert rounds.unsettled() == list(range(90, 100))
    assert len(existing(rounds.folder.checkpoints)[0].table) == 1
    (rounds.home / "die-90").unlink()
    rounds.begin(1)
    report = rounds.run()
    assert rounds.calls == [n for n in range(100) if n % 7 == 3 or n >= 90]
    assert report.notes == (
        "resuming: 90 records settled by run cut; 13 of them failed and are tried again",
    )
    check(rounds, records, 1, report)


@pytest.mark.slow
@settings(
    max_examples=at_most(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    delays=st.lists(st.integers(0, 3), min_size=1, max_size=25),
    kinds=st.lists(st.sampled_from(["keep", "drop", "expand"]), min_size=1, max_size=7),
    blanks=st.lists(st.sampled_from([b"", b"\n", b"  \n", b"\r\n\n"]), max_size=4),
    bom=st.booleans(),
    end=st.booleans(),
    mode=st.sampled_from(MODES),
    sizes=st.sampled_from([TINY, SMALL, USUAL]),
    piece=st.sampled_from([1, 100, 1 << 20]),
)
def test_failures_change_neither_order_nor_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    delays: list[int],
    kinds: list[str],
    blanks: list[bytes],
    bom: bool,
    end: bool,
    mode: str,
    sizes: SpanSizes,
    piece: int,
) -> None:
    records = plan_rounds(delays, kinds)
    content = messy(records, blanks, bom=bom, end=end)
    rounds = Rounds(tmp_path_factory.mktemp("example") / "home", content, mode)
    with pytest.MonkeyPatch.context() as patch:
        cut_by(patch, sizes)
        patch.setattr(kept_journal, "_PIECE_BYTES", piece)
        failed = len(records)
        for number in range(4):
            rounds.begin(number)
            report = rounds.run(RETRY if number else ResumePolicy.AUTO)
            assert len(rounds.calls) == failed
            check(rounds, records, number, report)
            failed = report.manifest.failed


class Fixable:
    """An operator whose code, options and name can change between two rounds."""

    def __init__(self, home: Path) -> None:
        self.folder = node(home)
        self.dataset = write_input(home / "input.jsonl", [{"n": n} for n in range(10)])
        self.calls: list[int] = []

    def operator(self, fails: Iterable[int], name: str = "fix", **options: Any) -> Any:
        calls, failing = self.calls, tuple(fails)

        def work(record, factor=1):
            calls.append(record["n"])
            if record["n"] in failing:
                msg = "a bug"
                raise ValueError(msg)
            return {"n": record["n"] * factor}

        work.__name__ = name
        return OperatorRegistry(print)("data.fixable", _concurrency_mode="single")(work)(**options)

    def run(self, fails: Iterable[int], resume: ResumePolicy = RETRY, **given: Any) -> RunReport:
        context = {"run": f"run {next(_NUMBERS)}"}
        context |= {key: given.pop(key) for key in _CONTEXT if key in given}
        self.calls.clear()
        operator = self.operator(fails, **given)
        return run(operator, self.dataset, self.folder, resume=resume, **context)

    def stopped(self, fails: Iterable[int], resume: ResumePolicy = RETRY, run: str = "") -> None:
        """Run until everything is settled, and stop before it is published."""
        published = self.folder.manifest.exists() and self.folder.manifest.read_bytes()
        done = 2 if resume is RETRY else 10

        def stop() -> str | None:
            return "told to" if len(self.calls) >= done else None

        with pytest.raises(RunStoppedError, match="told to"):
            self.run(fails, resume, run=run or "stopped", should_stop=stop)
        assert published == (self.folder.manifest.exists() and self.folder.manifest.read_bytes())
        assert existing(self.folder.checkpoints)[0].table.records == 10

    def result(self) -> list[int]:
        return [orjson.loads(line)["n"] for line in self.folder.result.read_bytes().splitlines()]


@pytest.fixture
def fixable(tmp_path: Path) -> Fixable:
    return Fixable(tmp_path)


def test_changed_code_is_logged_and_keeps_successful_records(fixable: Fixable) -> None:
    first = fixable.run([3, 7], ResumePolicy.AUTO, run="first")
    report = fixable.run([], run="fixed")
    assert fixable.calls == [3, 7]
    assert fixable.result() == list(range(10))
    note, unchanged = report.notes
    assert unchanged == "changed 0 of 10 records"  # it multiplies by one
    assert note.startswith("retrying 2 failed records of run first; the other 8 are kept")
    assert note.endswith("as asked, although the operator's code has changed since")
    (kept,) = report.manifest.kept_from
    assert kept == {"run": "first", **{k: first.manifest.made_from[k] for k in ("options", "code")}}
    assert Manifest.load(fixable.folder.manifest) == report.manifest


def test_changed_options_are_logged_and_apply_only_to_failed_records(fixable: Fixable) -> None:
    fixable.run([3, 7], ResumePolicy.AUTO)
    report = fixable.run([], factor=10)
    assert fixable.result() == [0, 1, 2, 30, 4, 5, 6, 70, 8, 9]
    assert "the operator's options and its code have changed since" in report.notes[0]


def test_a_mixed_result_is_not_a_finished_result_of_either_operator(fixable: Fixable) -> None:
    fixable.run([3, 7], ResumePolicy.AUTO, run="first")
    fixable.run([], run="fixed")
    for fails in ([], [3, 7]):
        report = fixable.run(fails, ResumePolicy.AUTO, reuse_finished=True)
        assert not report.reused
        assert fixable.calls == list(range(10))
        assert report.manifest.kept_from == []
        if fails:
            break
        fixable.run([3, 7], ResumePolicy.AUTO, run="first")
        fixable.run([], run="fixed")


def test_records_of_several_code_versions_are_reported_in_full_and_permanently(
    fixable: Fixable,
) -> None:
    fixable.run([3, 7, 9], ResumePolicy.AUTO, run="first")
    fixable.run([7, 9], run="second")
    fixable.run([9], run="third")
    report = fixable.run([9], run="fourth")  # the same code again
    assert [kept["run"] for kept in report.manifest.kept_from] == ["first", "second"]
    assert report.manifest.attempts == ["first", "second", "third", "fourth"]
    assert not fixable.run([9], ResumePolicy.AUTO, reuse_finished=True).reused


def test_a_retry_by_the_same_operator_is_a_finished_result_as_any_other(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path / "home", lines(plan_rounds([0, 1, 0])))
    rounds.run(ResumePolicy.AUTO)
    rounds.begin(1)
    assert rounds.run().manifest.kept_from == []
    rounds.begin(1)
    assert rounds.run(ResumePolicy.AUTO, reuse_finished=True).reused
    assert rounds.calls == []


def test_nothing_is_kept_from_a_result_in_which_everything_failed(fixable: Fixable) -> None:
    fixable.run(range(10), ResumePolicy.AUTO, _stop_after_failures=0)
    report = fixable.run([])
    assert fixable.result() == list(range(10))
    assert (report.manifest.kept_from, report.manifest.resumed) == ([], 0)


def test_a_run_that_resumes_a_killed_retry_must_match_all_its_code(fixable: Fixable) -> None:
    fixable.run([3, 7], ResumePolicy.AUTO)
    fixable.stopped([])
    report = fixable.run([], ResumePolicy.AUTO)
    assert "its code has changed since" in report.notes[0]
    assert fixable.calls == list(range(10))


def test_a_killed_retry_whose_code_is_fixed_once_more_tries_its_failures_again(
    fixable: Fixable,
) -> None:
    fixable.run([3, 7], ResumePolicy.AUTO, run="first")
    fixable.stopped([7], run="second")
    report = fixable.run([], run="third")
    assert fixable.calls == [7]
    assert fixable.result() == list(range(10))
    assert [kept["run"] for kept in report.manifest.kept_from] == ["first", "second"]


def test_without_failed_records_the_result_is_kept(fixable: Fixable) -> None:
    fixable.run([], ResumePolicy.AUTO, run="first")
    before = fixable.folder.result.stat()
    report = fixable.run([])
    assert report.reused
    assert report.notes == ("no failed record to retry: the result of run first is kept",)
    assert (fixable.calls, fixable.folder.result.stat()) == ([], before)


def test_without_a_published_result_it_acts_as_auto(fixable: Fixable) -> None:
    report = fixable.run([4])
    assert fixable.calls == list(range(10))
    assert report.manifest.failed == 1
    assert report.notes == ("changed 0 of 9 records",)  # it multiplies by one


@pytest.mark.parametrize("fails", [[3], []], ids=["failed", "none failed"])
@pytest.mark.parametrize("other", ["input", "record of equal size", "operator"])
def test_what_differs_from_the_result_is_refused_and_the_result_unchanged(
    fixable: Fixable, fails: list[int], other: str
) -> None:
    fixable.run(fails, ResumePolicy.AUTO, run="first")
    before, content = fixable.folder.result.read_bytes(), fixable.dataset.path.read_bytes()
    said = r"the input is not that of run first.*data_process_resume=False"
    options: dict[str, Any] = {}
    match other:
        case "input":
            fixable.dataset = write_input(fixable.dataset.path, [{"n": n} for n in range(1, 11)])
        case "operator":
            options, said = {"name": "other"}, "the operator is not that of run first"
        case _:
            fixable.dataset.path.write_bytes(content.replace(b"5", b"6"))
    with pytest.raises(RetryRefusedError, match=said):
        fixable.run(fails, **options)
    assert fixable.calls == []
    assert fixable.folder.result.read_bytes() == before


def test_an_input_that_was_only_touched_is_the_same(fixable: Fixable) -> None:
    fixable.run([3], ResumePolicy.AUTO)
    os.utime(fixable.dataset.path, ns=(1, 1))
    assert fixable.run([]).manifest.failed == 0
    assert fixable.calls == [3]


def test_a_record_whose_line_was_joined_to_a_failed_one_is_done_again(fixable: Fixable) -> None:
    """The newline after a failed record became a space: no record that was kept has changed."""
    fixable.run([3], ResumePolicy.AUTO)
    content = fixable.dataset.path.read_bytes()
    fixable.dataset.path.write_bytes(content.replace(b'{"n":3}\n', b'{"n":3} '))
    report = fixable.run([])
    assert fixable.result() == [0, 1, 2, 5, 6, 7, 8, 9]
    assert (report.manifest.rows_in, report.manifest.failed) == (9, 1)


def test_an_edited_result_is_refused(fixable: Fixable) -> None:
    fixable.run([3], ResumePolicy.AUTO)
    with fixable.folder.result.open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(RetryRefusedError, match="edited or replaced since it was published"):
        fixable.run([])
    assert fixable.calls == []


def test_a_result_damaged_without_a_new_time_is_repaired(
    fixable: Fixable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_journal, "_PIECE_BYTES", 10)
    cut_by(monkeypatch, TINY)
    fixable.run([3], ResumePolicy.AUTO)
    status = fixable.folder.result.stat()
    content = fixable.folder.result.read_bytes()
    fixable.folder.result.write_bytes(content.replace(b"6", b"8"))
    os.utime(fixable.folder.result, ns=(status.st_atime_ns, status.st_mtime_ns))
    report = fixable.run([])
    assert fixable.calls == [3, 6]
    assert fixable.result() == list(range(10))
    assert "1 settled spans are damaged on disk" in report.notes[1]


@pytest.mark.parametrize("damage", ["gone", "of another result", "torn"])
def test_without_knowing_where_results_lie_it_is_refused(fixable: Fixable, damage: str) -> None:
    fixable.run([2], ResumePolicy.AUTO)
    other = fixable.folder.kept.read_bytes()
    fixable.run([3], ResumePolicy.AUTO)
    match damage:
        case "gone":
            fixable.folder.kept.unlink()
        case "of another result":
            fixable.folder.kept.write_bytes(other)
        case "torn":
            content = fixable.folder.kept.read_bytes()
            fixable.folder.kept.write_bytes(bytes(30) + content[30:])
    with pytest.raises(RetryRefusedError, match=r"the map from records to result lines"):
        fixable.run([])
    assert fixable.calls == []


def test_the_error_file_may_be_edited_or_deleted(fixable: Fixable) -> None:
    fixable.run([3, 5], ResumePolicy.AUTO)
    fixable.folder.errors.unlink()
    fixable.run([5])
    assert fixable.calls == [3, 5]
    assert [row["index"] for row in error_rows(fixable.folder)] == [5]


def test_a_record_unfinished_elsewhere_is_not_used_and_the_note_reports_it(
    fixable: Fixable,
) -> None:
    fixable.run([3], ResumePolicy.AUTO, run="first")
    fixable.stopped([3], ResumePolicy.AUTO, run="unfinished")
    report = fixable.run([])
    assert "without 10 records settled by run unfinished since then" in report.notes[0]
    assert fixable.calls == [3]


def test_an_unfinished_run_over_a_newer_input_is_resumed(fixable: Fixable) -> None:
    fixable.run([3], ResumePolicy.AUTO, run="first")
    fixable.dataset = write_input(fixable.dataset.path, [{"n": n} for n in range(20, 30)])
    fixable.stopped([24], ResumePolicy.AUTO, run="unfinished")
    fixable.run([])
    assert fixable.calls == [24]
    assert fixable.result() == list(range(20, 30))


def test_a_line_that_is_not_a_record_fails_again_without_a_call(tmp_path: Path) -> None:
    records = plan_rounds([0, 1, 0])
    content = lines(records[:2]) + b"{nonsense\n" + lines(records[2:])
    rounds = Rounds(tmp_path / "home", content)
    rounds.run(ResumePolicy.AUTO)
    rounds.begin(1)
    report = rounds.run()
    assert rounds.calls == [1]
    (row,) = error_rows(rounds.folder)
    assert (row["index"], row["line"], row["exception"]) == (2, 3, "InvalidLine")
    assert report.manifest.failed == 1
    assert rounds.folder.result.read_bytes() == expected(records, 1, tmp_path / "reference")


@pytest.mark.parametrize("linked", [True, False], ids=["a link", "no links"])
def test_a_result_is_retried_where_it_is_a_link_or_cannot_be_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    records = plan_rounds([0, 1, 0, 1])
    rounds = Rounds(tmp_path / "home", lines(records))
    rounds.run(ResumePolicy.AUTO)
    if linked:
        shutil.move(rounds.folder.result, tmp_path / "elsewhere")
        rounds.folder.result.symlink_to(tmp_path / "elsewhere")
    else:
        monkeypatch.setattr(writer, "linked", lambda *_: False)
    rounds.begin(1)
    check(rounds, records, 1, rounds.run())


def test_a_retry_does_not_change_the_old_result_file(tmp_path: Path) -> None:
    records = plan_rounds([1, 0, 1, 0, 0, 1], _KINDS)
    rounds = Rounds(tmp_path / "home", lines(records))
    rounds.run(ResumePolicy.AUTO)
    before = rounds.folder.result.read_bytes()
    reader = rounds.folder.result.open("rb")
    rounds.begin(1)
    rounds.killed_at(5)
    assert rounds.folder.result.read_bytes() == before
    found = published(rounds.folder)
    assert found
    assert found[1].failed == 3
    check(rounds, records, 1, rounds.run())
    assert reader.read() == before
    reader.close()


def test_a_disk_that_fills_up_leaves_no_incomplete_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = plan_rounds([0, 1, 0, 0])
    rounds = Rounds(tmp_path / "home", lines(records))
    rounds.killed_at(3, ResumePolicy.AUTO)
    rounds.begin(1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space left"):
        patch.setattr(os, "fdatasync", full)
        rounds.run()
    assert [path.name for path in rounds.folder.checkpoints.iterdir()] == ["1"]
    check(rounds, records, 1, rounds.run())
    assert rounds.calls == [1, 3]


def test_a_retry_killed_while_it_is_prepared_is_prepared_again(tmp_path: Path) -> None:
    records = plan_rounds([0, 1, 0, 1])
    rounds = Rounds(tmp_path / "home", lines(records))
    rounds.run(ResumePolicy.AUTO)
    rounds.begin(1)

    def die() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(retry_failed, "write_durably", lambda *_: os._exit(1))
        rounds.run()

    assert in_child(die) == 1
    check(rounds, records, 1, rounds.run())
    assert rounds.calls == [1, 3]


def test_a_journal_kept_by_a_crashed_run_is_not_part_of_another_operators_result(
    tmp_path: Path,
) -> None:
    folder = node(tmp_path)
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n, "do": "keep"} for n in range(3)])
    folder.path.mkdir(parents=True)
    (folder.path / f".{folder.kept.name}.draft").write_bytes(b"of a crashed run")
    run(turn_around(), dataset, folder)
    assert not folder.kept.exists()


def test_a_dataset_operators_failed_lines_are_refused(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}, {"n": 2}])
    with dataset.path.open("ab") as file:
        file.write(b"nonsense\n")
    dataset = JsonlDataset.of_file(dataset.path)
    run(turn_around(), dataset, node(tmp_path), run="first")
    with pytest.raises(RetryRefusedError, match="a dataset operator takes all records at once"):
        run(turn_around(), dataset, node(tmp_path), resume=RETRY)


def test_a_dataset_operators_result_without_failures_is_kept(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}, {"n": 2}])
    assert not run(turn_around(), dataset, node(tmp_path), resume=RETRY).reused
    assert run(turn_around(), dataset, node(tmp_path), resume=RETRY).reused


def test_several_inputs_gathered_into_one_are_recognized(tmp_path: Path) -> None:
    records = plan_rounds([0, 1, 1, 0])
    rounds = Rounds(tmp_path / "home", lines(records))
    parts = [write_input(tmp_path / f"{n}.jsonl", records[2 * n : 2 * n + 2]) for n in (0, 1)]
    run(rounds.operator, parts, rounds.folder, run="first")
    rounds.begin(1)
    run(rounds.operator, parts, rounds.folder, resume=RETRY)
    assert rounds.calls == [1, 2]
    assert rounds.folder.result.read_bytes() == expected(records, 1, tmp_path / "reference")


def test_an_error_file_row_has_no_internal_fields(tmp_path: Path) -> None:
    run_over(
        tmp_path,
        act(_concurrency_mode="single", _stop_after_failures=0),
        [{"n": 1, "do": "fail", "text": ""}],
    )
    (row,) = error_rows(node(tmp_path))
    names = "index path line operator exception message traceback attempts input"
    assert list(row) == names.split()


def test_a_digest_of_the_input_takes_the_place_of_checksums(tmp_path: Path) -> None:
    records = plan_rounds([0, 1, 0, 1])
    rounds = Rounds(tmp_path / "home", lines(records))
    path = rounds.dataset.path
    rounds.dataset = replace(rounds.dataset, rows=4, fingerprint=content_digest(path))
    rounds.run(ResumePolicy.AUTO)
    rounds.begin(1)
    check(rounds, records, 1, rounds.run())
    path.write_bytes(lines(reversed(records)))
    rounds.dataset = replace(rounds.dataset, fingerprint=content_digest(path))
    rounds.begin(2)
    with pytest.raises(RetryRefusedError, match="the input is not that of"):
        rounds.run()


class Longest(_SELECTIONS):
    """Keeps the record with the largest ``n``; sketches of records in ``fails`` fail."""

    def __init__(self, fails: Any = (), stop_at: int = -1, **kwargs: Any) -> None:
        super().__init__(_concurrency_mode="single", **kwargs)
        self.fails, self.stop_at = list(fails), stop_at

    def sketch(self, record):
        _SKETCHED.append(record["n"])
        if record["n"] == self.stop_at:
            raise KeyboardInterrupt
        if record["n"] in self.fails:
            raise ValueError
        return record["n"]

    def keep(self, sketches):
        known = list(sketches)
        return [sketch == max(known) for sketch in known]


def test_a_selection_operator_is_refused_only_after_publication(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_by(monkeypatch, TINY)
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(6)])
    folder = node(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(Longest(fails=[1, 2], stop_at=4), dataset, folder, resume=ResumePolicy.AUTO)
    _SKETCHED.clear()
    run(Longest(fails=[2]), dataset, folder, run="second", resume=RETRY)
    assert _SKETCHED == [1, 2, 4, 5]
    assert folder.result.read_bytes() == b'{"n":5}\n'
    with pytest.raises(RetryRefusedError, match="a selection operator decides over all records"):
        run(Longest(), dataset, folder, run="third", resume=RETRY)


def test_an_interrupted_publication_is_finished_before_a_retry(fixable: Fixable) -> None:
    def die() -> None:
        patch = pytest.MonkeyPatch()
        patch.setattr(commit, "_finish", lambda *_: os._exit(1))
        fixable.run([3], ResumePolicy.AUTO, run="cut")

    assert in_child(die) == 1
    report = fixable.run([3])
    assert fixable.calls == [3]
    assert report.notes[0].startswith("finished publishing the result of run cut")
    assert report.notes[1].startswith("retrying 1 failed record of run cut")


def test_a_new_checkpoint_removes_those_whose_making_was_cut_short(tmp_path: Path) -> None:
    folder = node(tmp_path)
    for name in ("1", "2"):
        (folder.checkpoints / name).mkdir(parents=True)
        (folder.checkpoints / name / "segment-00001.jsonl").write_bytes(b"{}\n")
    (folder.checkpoints / "2" / "journal").touch()
    folder.result.write_bytes(b"{}\n")
    folder.kept.touch()
    new = seeded_by_result(folder).folder
    assert sorted(folder.checkpoints.iterdir()) == [folder.checkpoints / "2", new]
