"""Tests of records of a result that are processed again because they fulfil a condition."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import To, chain, config, data, data_register, pipeline
from dagster_dataops.configuration import root_setting
from dagster_dataops.errors import (
    ConditionColumnError,
    ConditionSyntaxError,
    ConfigurationError,
    RedoOutdatedError,
    RedoRefusedError,
)
from tests.faults.crashing import in_child
from tests.object_stores import FakeStore, use

GROUP = "chosen_records"
COUNT = 24


@pytest.fixture(autouse=True)
def root(tmp_path):
    (tmp_path / "round").write_text("0")
    with config.temporary(data_process_path=tmp_path / "root"):
        yield tmp_path / "root"


def _outcome(record: dict, home: str) -> Any:
    """Fail, drop or answer by the number of the record; the result names the round."""
    folder = Path(home)
    round_ = int((folder / "round").read_text())
    number = record["n"]
    with (folder / "calls").open("a") as file:
        file.write(f"{number}\n")
    if (folder / f"kill-{number}").exists():
        (folder / f"kill-{number}").unlink()
        os.kill(int((folder / "main").read_text()), signal.SIGKILL)
        signal.pause()
    if round_ == 0 and number % 6 == 1:
        msg = f"no answer for {number}"
        raise TimeoutError(msg)
    if round_ == 0 and number % 6 == 2:
        return []
    answer = record | {"round": round_}
    return [answer | {"half": 1}, answer | {"half": 2}] if number % 6 == 3 else answer


@data_register(f"data.{GROUP}", _max_workers=2, _stop_after_failures=0)
def outcome(record: dict, home: str):
    return _outcome(record, home)


@data_register(f"data.{GROUP}", _max_workers=2, _stop_after_failures=0)
async def outcome_async(record: dict, home: str):
    return _outcome(record, home)


def records_of(count: int = COUNT) -> list[dict]:
    return [{"n": n, "meta": {"lang": "de" if n % 2 else "en"}} for n in range(count)]


def calls_of(home: Path) -> list[int]:
    calls = sorted(map(int, (home / "calls").read_text().split()))
    (home / "calls").write_text("")
    return calls


def pipeline_over(home: Path, mode: str = "thread", **settings: Any) -> Any:
    factory = outcome_async if mode == "async" else outcome
    with pipeline("docs") as ppl:
        ppl.answer = factory(home=str(home), _concurrency_mode=mode, **settings)
    return ppl


def begin(ppl: Any, home: Path, records: Any = None) -> None:
    """Make the results of the first round, and begin the second one."""
    ppl.materialize(records_of() if records is None else records)
    calls_of(home)
    (home / "round").write_text("1")


def redo(ppl: Any, condition: str, records: Any = None, **more: str) -> Any:
    given = records_of() if records is None else records
    with config.temporary(data_process_resume={"records": condition, **more}):
        return ppl.materialize(given)["answer"]


def files_of(root: Path) -> tuple[list[dict], list[dict]]:
    folder = root / "docs" / "answer"
    lines, rows = (
        [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        for path in (folder / "answer_results.jsonl", folder / "answer_error.jsonl")
    )
    return lines, [{**row, "path": ""} for row in rows]  # a list is in another file each time


@pytest.mark.parametrize("mode", ["single", "thread", "process", "async"])
def test_only_chosen_records_are_called_again_in_every_mode(tmp_path, root, mode):
    ppl = pipeline_over(tmp_path, mode)
    ppl.materialize(records_of())
    before, errors = files_of(root)
    assert len(calls_of(tmp_path)) == COUNT
    (tmp_path / "round").write_text("1")

    report = redo(ppl, "dropped and n < 10 or error contains 'for 7'")

    assert calls_of(tmp_path) == [2, 7, 8]
    after, errors_after = files_of(root)
    again = [line for line in after if line["round"] == 1]
    assert [line["n"] for line in again] == [2, 7, 8]
    assert [line for line in after if line["round"] == 0] == before
    assert errors_after == [row for row in errors if row["index"] != 7]
    assert [line["n"] for line in after] == sorted(line["n"] for line in after)
    manifest = report.manifest
    assert (manifest.rows_in, manifest.failed, manifest.dropped) == (COUNT, 3, 2)
    assert "the outcomes of the other 21 are kept" in report.notes[0]


def test_conditions_on_the_result_choose_all_lines_of_a_record(tmp_path, root):
    ppl = pipeline_over(tmp_path)
    begin(ppl, tmp_path)

    redo(ppl, "result.half == 2 and meta.lang == 'de' and n > 3")

    assert calls_of(tmp_path) == [9, 15, 21]
    assert [one["half"] for one in files_of(root)[0] if one["round"] == 1] == [1, 2] * 3


def test_a_result_with_one_line_for_each_record_has_no_map_and_is_redone(tmp_path, root):
    ppl = pipeline_over(tmp_path)
    records = [{"n": 6 * n} for n in range(2500)]
    ppl.materialize(records)
    assert not (root / "docs" / "answer" / ".answer_results.kept").exists()
    calls_of(tmp_path)
    (tmp_path / "round").write_text("1")

    redo(ppl, "n in [0, 6006, 14994]", records)

    assert calls_of(tmp_path) == [0, 6006, 14994]
    assert [one["n"] for one in files_of(root)[0] if one["round"]] == [0, 6006, 14994]
    assert [one["n"] for one in files_of(root)[0]] == [6 * n for n in range(2500)]


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_killed_redo_goes_on_with_the_same_choice(tmp_path, root, mode):
    ppl = pipeline_over(tmp_path, mode, _max_workers=1)
    begin(ppl, tmp_path)
    (tmp_path / "kill-21").touch()

    def killed() -> None:
        (tmp_path / "main").write_text(str(os.getpid()))
        redo(ppl, "result.round == 0 and n > 9")

    chosen = [n for n in range(10, COUNT) if n % 6 not in {1, 2}]
    assert in_child(killed) == -signal.SIGKILL
    first = calls_of(tmp_path)
    assert set(first) < set(chosen)
    assert 21 not in {one["n"] for one in files_of(root)[0] if one["round"]}

    report = redo(ppl, "result.round == 0 and n > 9")

    second = calls_of(tmp_path)
    assert set(first) | set(second) == set(chosen)
    assert 21 in second
    assert "resuming" in report.notes[0]
    assert sorted({one["n"] for one in files_of(root)[0] if one["round"]}) == chosen


def test_without_a_chosen_record_the_result_is_kept(tmp_path, root):
    ppl = pipeline_over(tmp_path)
    ppl.materialize(records_of())
    before = (root / "docs" / "answer" / "answer_results.jsonl").read_bytes()
    calls_of(tmp_path)

    report = redo(ppl, "n > 100")

    assert report.reused
    assert calls_of(tmp_path) == []
    assert (root / "docs" / "answer" / "answer_results.jsonl").read_bytes() == before
    assert not list((root / "docs" / "answer").glob(".checkpoints/*/*"))


def test_a_redo_may_change_code_and_options_and_says_so(tmp_path, root):
    pipeline_over(tmp_path).materialize(records_of())
    with pipeline("docs") as ppl:
        ppl.answer = outcome(home=f"{tmp_path}/.", _concurrency_mode="single")
    (tmp_path / "round").write_text("1")

    report = redo(ppl, "failed")

    assert "although the operator's options have changed since" in report.notes[0]
    assert report.manifest.failed == 0
    assert report.manifest.kept_from


def test_a_condition_is_refused_where_the_facts_are_not_there(tmp_path, root):
    ppl = pipeline_over(tmp_path)
    with pytest.raises(RedoRefusedError, match="there is no published result"):
        redo(ppl, "failed")
    ppl.materialize(records_of())
    with pytest.raises(RedoOutdatedError, match="the input is not that of run"):
        redo(ppl, "failed", records_of(3))
    with pytest.raises(ConditionColumnError, match=r"'meta.long'.*Did you mean 'meta.lang'"):
        redo(ppl, "meta.long == 'de'")
    with pytest.raises(ConditionColumnError, match=r"Did you mean 'drop_reason'"):
        redo(ppl, "drop_reson == 'x'")
    with pytest.raises(ConditionColumnError, match=r"'result.halff'.*Did you mean 'result.half'"):
        redo(ppl, "failed or result.halff == 1")
    with pytest.raises(ConditionSyntaxError, match="character 8"):
        redo(ppl, "failed xand dropped")
    with pytest.raises(ConfigurationError, match="for a node of the pipeline: answer"):
        redo(ppl, "failed", node="answers")
    with (root / "docs" / "answer" / "answer_results.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(RedoRefusedError, match="it was edited since"):
        redo(ppl, "failed")


def test_an_error_file_that_was_cut_off_or_edited_is_refused(tmp_path, root):
    ppl = pipeline_over(tmp_path)
    ppl.materialize(records_of())
    errors = root / "docs" / "answer" / "answer_error.jsonl"
    rows = errors.read_text()
    for text, reason in (
        (rows[:-10], "has a line that is no record"),
        (rows + "3\n", "has a line that is no record"),
        (rows.split("\n", 1)[1], "does not have all failed records"),
    ):
        errors.write_text(text)
        with pytest.raises(RedoRefusedError, match=reason):
            redo(ppl, "failed")


def test_an_untraced_result_and_one_made_as_a_whole_are_refused(tmp_path):
    ppl = pipeline_over(tmp_path, _trace=False)
    ppl.materialize(records_of())
    with pytest.raises(RedoRefusedError, match="_trace=False"):
        redo(ppl, "failed")
    with pipeline("docs") as whole:
        whole.answer = data.dedup.Exact(input_key="n")
    whole.materialize(records_of())
    with pytest.raises(RedoRefusedError):
        redo(whole, "dropped")


def test_a_condition_for_one_node_leaves_the_others_as_they_are(tmp_path, root):
    with pipeline("docs") as ppl:
        ppl.first = outcome(home=str(tmp_path), _concurrency_mode="single")
        ppl.answer = outcome(home=str(tmp_path), _concurrency_mode="single")
    records = [{"n": 6 * n} for n in range(4)]
    ppl.materialize(records)
    calls_of(tmp_path)

    redo(ppl, "n == 6 and round == 0", records, node="answer")

    assert calls_of(tmp_path) == [6]


@pytest.mark.parametrize(
    "value", [{}, {"record": "failed"}, {"records": ""}, {"records": 3}, '{"records": ']
)
def test_the_setting_is_checked(value):
    with (
        config.temporary(data_process_resume=value),
        pytest.raises(ConfigurationError, match="'records': 'CONDITION'"),
    ):
        _ = config.data_process_resume


def test_the_environment_may_hold_a_condition(monkeypatch):
    monkeypatch.setenv("DATAOPS_DATA_PROCESS_RESUME", '{"records": "failed"}')
    assert config.data_process_resume == {"records": "failed"}


@data_register(f"data.{GROUP}", _concurrency_mode="single", _stop_after_failures=0)
def fate(record: dict, home: str):
    return _outcome(record, home)


@data_register(f"data.{GROUP}", _concurrency_mode="single")
def last(record: dict):
    return record | {"last": True}


@data_register(
    f"data.{GROUP}", outputs=("a", "b"), _concurrency_mode="single", _stop_after_failures=0
)
def routed(record: dict, home: str):
    lines = _outcome(record, home)
    if isinstance(lines, list):
        return [To("a" if at % 2 else "b", line) for at, line in enumerate(lines)]
    return To("a", lines)


def test_a_chain_keeps_its_numbers_by_part(tmp_path, root):
    with pipeline("docs") as ppl:
        ppl.answer = chain(fate(home=str(tmp_path)), last())
    begin(ppl, tmp_path)

    report = redo(ppl, "drop_reason contains 'fate'")

    assert calls_of(tmp_path) == [2, 8, 14, 20]
    first, second = report.manifest.funnel
    assert (first["entered"], first["emitted"], first["failed"]) == (COUNT, COUNT, 4)
    assert (second["entered"], second["emitted"], second["failed"]) == (COUNT, COUNT, 0)


def test_named_outputs_are_redone_together(tmp_path, root):
    with pipeline("docs") as ppl:
        ppl.answer = routed(home=str(tmp_path))
    begin(ppl, tmp_path)

    redo(ppl, "result.half == 1 and n > 9")

    assert calls_of(tmp_path) == [15, 21]
    for output, half in (("a", 2), ("b", 1)):
        (path,) = (root / "docs" / "answer" / output).glob("*_results.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [one["n"] for one in lines] == sorted(one["n"] for one in lines)
        assert [one["n"] for one in lines if one["round"]] == [15, 21]
        assert {one["half"] for one in lines if "half" in one} == {half}


def test_blank_lines_invalid_lines_and_compressed_results_are_kept(tmp_path, root):
    pytest.importorskip("zstandard", reason="compressed results are of the extra zstd")
    source = tmp_path / "in.jsonl"
    lines = [json.dumps(record) + "\n" * (1 + record["n"] % 3) for record in records_of()]
    source.write_bytes(b"\xef\xbb\xbf" + "".join(lines).encode() + b"no json\n\n")
    ppl = pipeline_over(tmp_path)
    with config.temporary(result_format="jsonl.zst"):
        begin(ppl, tmp_path, source)
        report = redo(ppl, "failed and n > 0 or n == 23", source)

    assert calls_of(tmp_path) == [1, 7, 13, 19, 23]
    records = report.dataset.read()
    assert [one["n"] for one in records if one["round"]] == [1, 7, 13, 19, 23]
    assert (report.manifest.rows_in, report.manifest.failed) == (COUNT + 1, 1)


def test_records_are_redone_on_another_machine_with_the_same_store(tmp_path):
    store, url = FakeStore(), "memory://redone/results"
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(record) + "\n" for record in records_of()))
    ppl = pipeline_over(tmp_path, "thread")
    for machine, condition in enumerate(["", "dropped or n == 7"]):
        with config.temporary(
            data_process_path=url, data_process_scratch=tmp_path / f"machine{machine}"
        ):
            bucket = root_setting("root", url).bucket
            assert bucket is not None
            use(bucket, store)
            if not condition:
                begin(ppl, tmp_path, source)
                continue
            report = redo(ppl, condition, source)
            records = report.dataset.read()

    assert calls_of(tmp_path) == [2, 7, 8, 14, 20]
    assert {one["n"] for one in records if one["round"]} == {2, 7, 8, 14, 20}
    assert (report.manifest.failed, report.manifest.dropped) == (3, 0)
