import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagster_dataops import Drop, JsonlDataset, OperatorContext
from dagster_dataops.data import data_register
from dagster_dataops.errors import DatasetOperatorError, InputError, RecordError, RunStoppedError
from dagster_dataops.execution.runners import kept_lines, selection_stages
from tests.examples import at_most
from tests.execution.helpers import (
    MODES,
    SMALL,
    TINY,
    USUAL,
    cut_by,
    error_rows,
    lines,
    look_at_every_tick,
    node,
    run,
    run_over,
    without_traceback,
    write_input,
)
from tests.journals import segment_path
from tests.nodes import Manifest, ResumePolicy, existing, write_records

group: Any = data_register.new_group("selecting_tests")


class RisingNumbers(group):
    """Keep records whose number exceeds all earlier ones; ``n`` None has no sketch."""

    def __init__(self, at_once: bool = False, log: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.at_once, self.log = at_once, log

    def sketch(self, record):
        number = record["n"]
        record.clear()  # its own copy
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{number}\n")
        return {"number": int(number)}

    def keep(self, sketches: Iterator[Any]) -> Iterator[bool]:
        highest = -1
        for sketch in list(sketches) if self.at_once else sketches:
            yield sketch["number"] > highest
            highest = max(highest, sketch["number"])


class RisingSlowly(RisingNumbers):
    async def sketch(self, record):
        return {"number": int(record["n"])}


class Choose(group):
    """Act on ``do`` with the sketches."""

    def __init__(self, do: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.do = do

    def sketch(self, record):
        return record["n"]

    def keep(self, sketches, scratch):
        return self.do(sketches, scratch)


def rising(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept, highest = [], -1
    for record in records:
        if record["n"] is not None:
            kept += [record] * (record["n"] > highest)
            highest = max(highest, record["n"])
    return kept


def operator_for(mode: str, **given: Any) -> Any:
    cls = RisingSlowly if mode == "async" else RisingNumbers
    return cls(_concurrency_mode=mode, _max_workers=2, _stop_after_failures=0, **given)


NUMBERS = st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=40)


@pytest.mark.parametrize("mode", MODES)
@given(numbers=NUMBERS, sizes=st.sampled_from([TINY, SMALL, USUAL]), at_once=st.booleans())
@settings(max_examples=at_most(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_mode_keeps_the_same_and_names_the_same_failures(
    tmp_path: Path, mode: str, numbers, sizes, at_once: bool
) -> None:
    records = [{"n": number, "text": "é"} for number in numbers]
    dataset = write_input(tmp_path / "input.jsonl", records)
    folder = node(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        cut_by(patch, sizes)
        patch.setattr(kept_lines, "_BLOCK_BYTES", max(1, sizes.range_bytes // 2))
        patch.setattr(selection_stages, "_SKETCH_BYTES", sizes.range_bytes)
        report = run(operator_for(mode, at_once=at_once), dataset, folder)
    assert folder.result.read_bytes() == lines(rising(records))
    failed = [place for place, number in enumerate(numbers) if number is None]
    assert [(row["index"], row["line"]) for row in error_rows(folder)] == [
        (place, place + 1) for place in failed
    ]
    manifest = report.manifest
    assert (manifest.rows_in, manifest.failed) == (len(records), len(failed))
    assert manifest.rows_out == len(rising(records))
    assert manifest.dropped == manifest.rows_in - manifest.failed - manifest.rows_out
    assert not folder.checkpoints.exists()


class RisingBatches(group):
    """As `RisingNumbers`, by batches; it counts what ``open`` gave it."""

    def open(self, context: OperatorContext) -> None:
        self.context = context

    def sketch_batch(self, records: list[dict[str, Any]]) -> list[Any]:
        self.context.count(sketched=len(records))
        return [
            ValueError("no number") if record["n"] is None else {"number": record["n"]}
            for record in records
        ]

    keep = RisingNumbers.keep
    _batch_size = 4
    at_once = False


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_batches_are_sketched_with_a_context_and_fail_one_by_one(tmp_path: Path, mode: str) -> None:
    records = [{"n": number} for number in (1, 2, None, 2, 5, 4, 6, None, 7, 7)]

    report = run_over(tmp_path, RisingBatches(_concurrency_mode=mode, _max_workers=2), records)

    kept = [{"n": number} for number in (1, 2, 5, 6, 7)]
    assert node(tmp_path).result.read_bytes() == lines(kept)
    assert [row["index"] for row in error_rows(node(tmp_path))] == [2, 7]
    assert report.manifest.counts == {"sketched": 10}


def test_bad_and_blank_lines_are_distinguished_from_records(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"n": 1,  "a":1.0}\r\n\n  \nbad\n{"n":null}\n[1]\n{"n":0}\n{ "n":2}'
    )
    for mode in MODES:
        report = run(operator_for(mode), JsonlDataset.of_file(path), node(tmp_path, mode))
        assert node(tmp_path, mode).result.read_bytes() == b'{"n":1,"a":1.0}\n{"n":2}\n'
        rows = error_rows(node(tmp_path, mode))
        assert [(row["index"], row["line"], row["exception"]) for row in rows] == [
            (1, 4, "InvalidLine"),
            (2, 5, "TypeError"),
            (3, 6, "InvalidLine"),
        ]
        assert rows[1]["input"] == {"n": None}
        assert without_traceback(rows) == without_traceback(error_rows(node(tmp_path, MODES[0])))
        assert (report.manifest.rows_in, report.manifest.dropped) == (6, 1)


def test_lines_of_our_own_are_copied_and_others_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = write_records(tmp_path / "ours.jsonl", [{"n": 1}, {"n": 2}], "test")
    theirs = tmp_path / "theirs.jsonl"
    theirs.write_bytes(b'{"n" : 3}\n')
    encoded = []
    encode_lines = kept_lines._encoded_lines
    monkeypatch.setattr(
        kept_lines, "_encoded_lines", lambda some: encoded.extend(some) or encode_lines(some)
    )
    run(RisingNumbers(), ours, node(tmp_path))
    assert encoded == []
    run(RisingNumbers(), [ours, JsonlDataset.of_file(theirs)], node(tmp_path))
    assert node(tmp_path).result.read_bytes() == lines([{"n": 1}, {"n": 2}, {"n": 3}])
    assert len(encoded) == 3


def test_a_record_that_nests_too_deep_to_be_written_is_copied(tmp_path: Path) -> None:
    line = b'{"n":1,"deep":' + b"[" * 300 + b"]" * 300 + b"}"
    path = tmp_path / "input.jsonl"
    path.write_bytes(b" " + line + b"\r\n")
    run(RisingNumbers(), JsonlDataset.of_file(path), node(tmp_path))
    assert node(tmp_path).result.read_bytes() == line + b"\n"


def test_the_first_failing_sketch_fails_the_step_where_failures_are_not_ignored(
    tmp_path: Path,
) -> None:
    with pytest.raises(RecordError, match=r"RisingNumbers failed on record 1 \(.*line 2\)"):
        run_over(tmp_path, RisingNumbers(_ignore_errors=False), [{"n": 1}, {"n": None}, {"n": 2}])
    assert not node(tmp_path).result.exists()


def test_a_sketch_that_json_cannot_hold_is_that_records_error(tmp_path: Path) -> None:
    class Bytes(group):
        def sketch(self, record):
            return b"x" if record["n"] == 1 else "x"

        def keep(self, sketches):
            return [True for _ in sketches]

    report = run_over(tmp_path, Bytes(), [{"n": n} for n in range(3)])
    assert report.dataset.read() == [{"n": 0}, {"n": 2}]
    assert "'sketch' holds a bytes" in error_rows(node(tmp_path))[0]["message"]


@pytest.fixture
def numbered(tmp_path: Path) -> JsonlDataset:
    return write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(9)])


WRONG = {
    "keep yielded fewer verdicts": lambda sketches, _: [True, False],
    "keep yielded more verdicts": lambda sketches, _: [True] * 10,
    "keep yielded a int; yield True or False": lambda sketches, _: sketches,
    "keep yielded a str; yield True or False": lambda sketches, _: "yes, yes!",
    "keep returned a NoneType; yield True or False": lambda sketches, _: None,
    "ZeroDivisionError: division by zero": lambda sketches, _: (1 / n > 0 for n in sketches),
    "SystemExit: 3": lambda sketches, _: sys.exit(3),
}


@pytest.mark.parametrize("reason", WRONG)
def test_an_invalid_keep_fails_the_step(tmp_path: Path, numbered, reason: str) -> None:
    do = WRONG[reason]
    with pytest.raises(DatasetOperatorError, match=reason) as caught:
        run(Choose(do=do, _concurrency_mode="single"), numbered, node(tmp_path))
    assert "selection_runner.py" not in caught.value.traceback_text.replace(
        "test_selection_runner.py", ""
    )
    assert not list(node(tmp_path).path.glob(".*.draft"))
    assert [content.table.records for content in existing(node(tmp_path).checkpoints)] == [9]


def test_an_interrupt_of_keep_is_raised_and_leaves_the_sketches(tmp_path: Path, numbered) -> None:
    def interrupted(sketches, scratch):
        next(sketches)
        raise KeyboardInterrupt

    operator = Choose(do=interrupted, _concurrency_mode="single")
    with pytest.raises(KeyboardInterrupt):
        run(operator, numbered, node(tmp_path))
    assert existing(node(tmp_path).checkpoints)[0].table.records == 9


def test_keep_can_be_stopped(tmp_path: Path, numbered, monkeypatch: pytest.MonkeyPatch) -> None:
    look_at_every_tick(monkeypatch)
    reasons: list[str | None] = [None]

    def stopping(sketches, scratch):
        reasons.append("enough")
        return (True for _ in sketches)

    with pytest.raises(RunStoppedError, match="enough"):
        run(
            Choose(do=stopping, _concurrency_mode="single"),
            numbered,
            node(tmp_path),
            should_stop=lambda: reasons[-1],
        )
    assert existing(node(tmp_path).checkpoints)[0].table.records == 9


def test_the_scratch_folder_is_empty_at_first_and_deleted_afterwards(
    tmp_path: Path, numbered
) -> None:
    seen: list[Path] = []

    def writing(sketches, scratch):
        assert not list(scratch.iterdir())
        (scratch / "file").write_text("x")
        seen.append(scratch)
        if len(seen) == 1:
            raise ValueError("first")
        return [True for _ in sketches]

    operator = Choose(do=writing, _concurrency_mode="single")
    with pytest.raises(DatasetOperatorError):
        run(operator, numbered, node(tmp_path))
    assert not seen[0].exists()
    seen[0].mkdir()  # as a killed run leaves it
    (seen[0] / "old").write_text("x")
    run(operator, numbered, node(tmp_path), resume=ResumePolicy.AUTO)
    assert seen[0] == seen[1]
    assert not seen[1].exists()


def test_an_unfinished_selection_repeats_no_sketch(tmp_path: Path, numbered) -> None:
    log = tmp_path / "log"

    class Failing(RisingNumbers):
        def keep(self, sketches):
            if not (tmp_path / "fixed").exists():
                raise ValueError("not yet")
            return super().keep(sketches)

    operator = Failing(log=str(log), _concurrency_mode="thread", _max_workers=3)
    with pytest.raises(DatasetOperatorError, match="not yet"):
        run(operator, numbered, node(tmp_path))
    (tmp_path / "fixed").touch()
    report = run(operator, numbered, node(tmp_path), run="next", resume=ResumePolicy.AUTO)
    assert report.notes == ("resuming: 9 records settled by run test",)
    assert sorted(map(int, log.read_text().split())) == list(range(9))
    assert report.dataset.rows == 9


def test_a_damaged_sketch_is_made_again(tmp_path: Path, numbered) -> None:
    damaged = []

    def damaging(sketches, scratch):
        if not damaged:
            damaged.append(segment_path(scratch.parent, 1))
            os.truncate(damaged[0], 20)
            raise ValueError("again")
        return [True for _ in sketches]

    operator = Choose(do=damaging, _concurrency_mode="single")
    with pytest.raises(DatasetOperatorError):
        run(operator, numbered, node(tmp_path))
    report = run(operator, numbered, node(tmp_path), resume=ResumePolicy.AUTO)
    assert any("damaged on disk" in note for note in report.notes)
    assert report.dataset.read() == numbered.read()


def test_an_input_that_changes_meanwhile_is_refused(tmp_path: Path, numbered) -> None:
    def changing(sketches, scratch):
        kept = [True for _ in sketches]
        with numbered.path.open("ab") as file:
            file.write(b'{"n":1}\n')
        return kept

    with pytest.raises(InputError, match="changed while"):
        run(Choose(do=changing, _concurrency_mode="single"), numbered, node(tmp_path))
    assert not node(tmp_path).result.exists()


def test_called_on_a_list_it_gives_the_records_it_keeps(root: Path) -> None:
    records = [{"n": 2, "a": [1]}, {"n": 1}, {"n": 3}]
    assert RisingNumbers(_save_data=False)(records) == [{"n": 2, "a": [1]}, {"n": 3}]
    assert RisingNumbers()([]) == []
    assert RisingNumbers()({"n": 0}) == [{"n": 0}]


class Numbered(group):
    """Keep every record or none, with or without its number; act on ``do`` in ``change``."""

    def __init__(self, verdicts: Any = (), do: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.verdicts, self.do = verdicts, do

    def sketch(self, record):
        return record["n"]

    def keep(self, sketches):
        return [self.verdicts[sketch] for sketch in sketches]

    def change(self, record, verdict):
        return self.do(record, verdict)


def changed(tmp_path: Path, verdicts: list[Any], do: Any, ours: bool = True) -> bytes:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(len(verdicts))])
    if not ours:
        dataset = JsonlDataset.of_file(dataset.path)
    operator = Numbered(verdicts, do, _concurrency_mode="single")
    run(operator, dataset, node(tmp_path))
    return node(tmp_path).result.read_bytes()


@pytest.mark.parametrize("ours", [True, False])
def test_change_gets_the_records_for_which_keep_yields_no_bool(tmp_path: Path, ours: bool) -> None:
    def do(record, verdict):
        record["verdict"] = verdict
        return {"new": 1} if verdict == "new" else [] if verdict == "none" else None

    found = changed(tmp_path, [True, False, {"a": 1}, None, "new", "none"], do, ours)
    assert found == lines(
        [{"n": 0}, {"n": 2, "verdict": {"a": 1}}, {"n": 3, "verdict": None}, {"new": 1}]
    )


@pytest.mark.parametrize("ours", [True, False])
def test_records_that_change_drops_are_counted_by_reason(tmp_path: Path, ours: bool) -> None:
    verdicts = [True, False, "short", "double", "long", "short", "short", "short", "none"]
    given = [*({"n": n} for n in range(len(verdicts))), {"no": 0}]
    dataset = write_input(tmp_path / "input.jsonl", given)
    if not ours:
        (tmp_path / "input.jsonl").write_bytes(b"\n" + dataset.path.read_bytes())
        dataset = JsonlDataset.of_file(dataset.path)

    def do(record, verdict):
        made = {"double": [record, record], "none": []}
        return made.get(verdict, Drop(verdict))

    operator = Numbered(verdicts, do, _concurrency_mode="single", _stop_after_failures=0)
    run(operator, dataset, node(tmp_path))
    found = Manifest.load(node(tmp_path).manifest)
    assert found is not None

    assert (found.rows_in, found.dropped, found.failed, found.rows_out) == (10, 7, 1, 3)
    assert found.drops == {"short": 4, "long": 1}
    examples = {
        reason: [(one["line"] - (not ours), one["input"]) for one in many]
        for reason, many in found.drop_examples.items()
    }
    assert examples == {
        "short": [(3, '{"n":2}'), (6, '{"n":5}'), (7, '{"n":6}')],
        "long": [(5, '{"n":4}')],
    }


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda record, verdict: 1 / 0, "ZeroDivisionError"),
        (lambda record, verdict: "text", "returned a str"),
        (lambda record, verdict: {"a": {1}}, "set"),
    ],
)
def test_a_fault_of_change_names_the_operator(tmp_path: Path, do: Any, message: str) -> None:
    with pytest.raises(DatasetOperatorError, match=message) as caught:
        changed(tmp_path, ["x"], do)
    assert "selecting_tests.Numbered" in str(caught.value)
