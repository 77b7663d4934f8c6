"""Tests of columns that all, or some, of the records of a run lack."""

import json
import os
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagster_dataops import StopRun, chain, data, data_register, pipeline
from dagster_dataops.errors import (
    AbsentColumnError,
    DatasetOperatorError,
    OperatorOptionError,
    OutageError,
    RunStoppedError,
)
from tests.examples import at_most
from tests.execution.helpers import (
    MODES,
    Listener,
    error_rows,
    lines,
    node,
    run,
    run_over,
    second_thread,
    write_input,
)
from tests.nodes import ResumePolicy, count_tables

CALLS: list[int] = []


@data_register("data.presence", reads=["text"])
def needing(record: dict, fails: int = -1, gate: str = "") -> dict:
    CALLS.append(record["id"])
    if record["id"] == 250 and gate and Path(gate).exists():
        raise StopRun("the gate is there")
    if record["id"] == fails:
        raise ValueError(fails)
    return {**record, "size": len(record.get("text") or "")}


@data_register("data.presence", reads=["text"])
async def needing_async(record: dict) -> dict:
    return {**record, "size": len(record.get("text") or "")}


@data_register("data.presence", rewrite_func="forward_batch", reads=["text"], _batch_size=7)
def needing_batches(records: list) -> list:
    if any(record["id"] == 3 for record in records):
        raise ValueError(3)
    return [{**record, "size": 1} for record in records]


@data_register("data.presence", rewrite_func="forward_batch_input", reads=["text"])
def needing_all(records: list) -> list:
    return records


@data_register("data.presence")
def mark(record: dict, every: int = 3, column: str = "made") -> dict:
    if record["id"] % every == 0:
        record[column] = "x"
    return record


@data_register("data.presence", reads=["made"])
async def ask(record: dict) -> dict:
    CALLS.append(record["id"])
    return record


@data_register("data.presence", reads=lambda key: [key])
def part(record: dict, key: str = "a") -> dict:
    return record


def half(number: int = 60) -> list[dict[str, Any]]:
    """Return records of which those with an odd id have a text."""
    return [{"id": one, **({"text": f"t{one}"} if one % 2 else {})} for one in range(number)]


def lacking(report: Any) -> dict[str, float]:
    return count_tables(report.manifest.counts).get("missing_columns", {})


def mode_of(mode: str) -> Any:
    made = data.presence.needing_async if mode == "async" else data.presence.needing
    return made(_concurrency_mode=mode, _max_workers=3)


@pytest.mark.parametrize("mode", MODES)
def test_records_that_lack_a_column_are_counted_in_every_mode(tmp_path: Path, mode: str) -> None:
    report = run_over(tmp_path, mode_of(mode), half())
    assert lacking(report) == {"text": 30}
    assert report.notes == ("30 of 60 records lack the column 'text'",)


@pytest.mark.parametrize("mode", MODES)
def test_a_column_of_no_record_stops_the_run_before_the_first_call(
    tmp_path: Path, mode: str
) -> None:
    CALLS.clear()
    with pytest.raises(AbsentColumnError) as caught:
        run_over(tmp_path, mode_of(mode), [{"id": 1, "txet": "a"}, {"id": 2}])
    assert str(caught.value).endswith(
        "reads column 'text', which none of its 2 input records has; nothing was published. They "
        "have: id, txet. Did you mean 'txet'? Name another column in the option, or allow this by "
        "_missing='allow'"
    )
    assert CALLS == []
    assert not node(tmp_path).result.exists()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.args, str(copy)) == (caught.value.args, str(caught.value))


def test_the_last_of_many_records_is_enough(tmp_path: Path) -> None:
    records = [{"id": one} for one in range(3000)]
    late = [*records, {"id": 3000, "text": "a"}]
    assert lacking(
        run(mode_of("single"), write_input(tmp_path / "a.jsonl", late), node(tmp_path, "a"))
    ) == {"text": 3000}
    escaped = lines(records) + b'{"id":3000,"\\u0074ext":"a"}\n'
    dataset = write_input(tmp_path / "b.jsonl", [])
    dataset.path.write_bytes(escaped)
    made = run(mode_of("single"), type(dataset).of_file(dataset.path), node(tmp_path, "b"))
    assert lacking(made) == {"text": 3000}


def test_nothing_and_null_are_no_missing_columns(tmp_path: Path) -> None:
    empty = run(mode_of("single"), write_input(tmp_path / "a.jsonl", []), node(tmp_path, "a"))
    assert empty.notes == ()
    null = write_input(tmp_path / "b.jsonl", [{"id": 1, "text": None}] * 3)
    report = run(mode_of("single"), null, node(tmp_path, "b"))
    assert lacking(report) == {}
    assert report.notes == ("column 'text' is null in all 3 records",)


def test_with_error_each_record_that_lacks_a_column_fails(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", half())
    for name, operator in {
        "one": data.presence.needing(_concurrency_mode="thread", _missing="error"),
        "all": data.presence.needing_all(_missing="error"),
        "batch": data.presence.needing_batches(_concurrency_mode="single", _missing="error"),
    }.items():
        report = run(operator, dataset, node(tmp_path, name))
        found = error_rows(node(tmp_path, name))
        lacked = [row for row in found if row["exception"] == "MissingColumnError"]
        assert [row["index"] for row in lacked] == list(range(0, 60, 2)), name
        assert "its columns are id" in lacked[0]["message"]
        assert lacking(report) == {}


def test_with_allow_a_column_may_be_missing_everywhere(tmp_path: Path) -> None:
    operator = data.presence.needing(_concurrency_mode="single", _missing="allow")
    report = run_over(tmp_path, operator, [{"id": 1}])
    assert (report.manifest.rows_out, lacking(report), report.notes) == (1, {}, ())
    with pytest.raises(OperatorOptionError, match="one of count, error, allow; got 'empty'"):
        data.presence.needing(_missing="empty")


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_the_counts_are_exact_over_a_stopped_run(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", half(400))
    gate = tmp_path / "gate"
    gate.touch()
    operator = data.presence.needing(gate=str(gate), _concurrency_mode=mode, _max_workers=2)
    with pytest.raises(RunStoppedError):
        run(operator, dataset, node(tmp_path))
    gate.unlink()
    again = run(operator, dataset, node(tmp_path), resume=ResumePolicy.AUTO)
    assert again.manifest.resumed > 0
    assert lacking(again) == {"text": 200}


def test_records_that_fail_do_not_count_until_they_succeed(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", half())
    settings = {"_concurrency_mode": "thread", "_retries": 2, "_backoff": 0}
    first = run(data.presence.needing(fails=4, **settings), dataset, node(tmp_path))
    assert (first.manifest.failed, lacking(first)) == (1, {"text": 29})
    retried = run(
        data.presence.needing(fails=-1, **settings),
        dataset,
        node(tmp_path),
        resume=ResumePolicy.FAILED_RECORDS,
    )
    assert (retried.manifest.failed, lacking(retried)) == (0, {"text": 30})


def test_a_batch_counts_each_of_its_records(tmp_path: Path) -> None:
    report = run_over(tmp_path, data.presence.needing_batches(_concurrency_mode="thread"), half())
    assert (report.manifest.failed, lacking(report)) == (1, {"text": 30})


@pytest.mark.parametrize("mode", ["single", "thread", "process"])
def test_a_chain_names_the_part_that_lacked_a_column(tmp_path: Path, mode: str) -> None:
    dataset = write_input(tmp_path / "input.jsonl", half())
    parts = [
        data.presence.needing(),
        data.presence.mark(),
        data.text.Normalize(input_key="made", output_key="clean"),
    ]
    report = run(chain(*parts, _concurrency_mode=mode), dataset, node(tmp_path))
    assert lacking(report) == {"needing: text": 30, "Normalize: made": 40}
    wrong = chain(*parts[:2], data.text.Normalize(input_key="mdae"), _concurrency_mode=mode)
    with pytest.raises(AbsentColumnError, match="Normalize of chain .*'mdae' .*60 rec") as caught:
        run(wrong, dataset, node(tmp_path, "wrong"))
    names, _, hint = caught.value.known.partition(". ")
    # Each worker tells the columns of its first record, so that their order may differ.
    assert {"id", "size", "made"} <= set(names.removeprefix("They have: ").split(", "))
    assert hint.startswith("Did you mean 'made'?")
    assert not node(tmp_path, "wrong").result.exists()
    wrong = chain(data.text.Normalize(input_key="txet"), *parts[:2], _concurrency_mode=mode)
    with pytest.raises(AbsentColumnError, match="'txet' .input_key of part 'Normalize'."):
        run(wrong, dataset, node(tmp_path, "wrong"))


def test_options_that_a_launch_changes_count(tmp_path: Path) -> None:
    from tests.nodes import ExecutionSettings, reconfigured

    made = chain(data.text.Normalize(input_key="txet"), data.presence.mark(column="m"))
    right = reconfigured(made, {"Normalize": {"input_key": "text"}}, ExecutionSettings())
    assert lacking(run_over(tmp_path, right, half())) == {"Normalize: text": 30}


def test_calls_that_may_cost_money_stop_early_in_a_chain(tmp_path: Path) -> None:
    CALLS.clear()
    dataset = write_input(tmp_path / "input.jsonl", [{"id": one} for one in range(3000)])
    asked = chain(data.presence.mark(column="other"), data.presence.ask(), _max_workers=4)
    with pytest.raises(RunStoppedError, match="first 1,000 records .* part 2 .* 'made'"):
        run(asked, dataset, node(tmp_path))
    assert 990 < len(CALLS) < 1100
    CALLS.clear()
    late = chain(data.presence.mark(every=900), data.presence.ask(), _max_workers=4)
    assert lacking(run(late, dataset, node(tmp_path, "late"))) == {"ask: made": 2996}
    assert len(CALLS) == 3000


def test_elements_below_a_column_are_looked_at(tmp_path: Path) -> None:
    records = [{"meta": {"lang": "en", "parts": [{"text": "a"}, {"text": "b"}]}}, {"meta": {}}]
    dataset = write_input(tmp_path / "input.jsonl", records)
    for key, near in {
        "meta.lnag": "meta.lang",
        "meta.parts[*].txt": None,
        "mtea.lang": "meta",
        "lang": "meta.lang",
        "nothing": None,
    }.items():
        with pytest.raises(AbsentColumnError) as caught:
            run(data.dedup.Exact(input_key=key), dataset, node(tmp_path))
        assert near is None or f"Did you mean {near!r}?" in caught.value.known, key
    operator = data.dedup.Exact(input_key=["meta.lang", "meta.parts[*].text"])
    assert lacking(run(operator, dataset, node(tmp_path))) == {
        "meta.lang": 1,
        "meta.parts[*].text": 1,
    }
    no_elements = write_input(tmp_path / "b.jsonl", [{"parts": []}, {"parts": [{"text": "a"}]}])
    made = run(data.dedup.Exact(input_key="parts[*].text"), no_elements, node(tmp_path, "b"))
    assert lacking(made) == {}


def test_a_path_of_several_is_counted_by_its_own_name(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "a.jsonl", [{"a": "x", "b": "y"}, {"a": "x"}])
    with pytest.raises(AbsentColumnError, match="column 'c' .input_key"):
        run(data.dedup.Exact(input_key="a,c"), dataset, node(tmp_path))


def test_a_second_input_has_columns_of_its_own(tmp_path: Path) -> None:
    left = write_input(tmp_path / "left.jsonl", [{"id": 1}, {}])
    right = write_input(tmp_path / "right.jsonl", [{"number": 1, "name": "a"}])
    made = run(data.join.Merge("id", right_on="number"), [left, right], node(tmp_path))
    assert lacking(made) == {"id": 1}
    for wrong, file in {"right_on": "right", "on": "left"}.items():
        options = {"on": "id", "right_on": "number", wrong: "nubmer"}
        with pytest.raises(AbsentColumnError, match=rf"{file}\.jsonl"):
            run(data.join.Merge(**options), [left, right], node(tmp_path, "wrong"))


def test_warnings_reach_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pipeline("docs") as ppl:
        ppl.clean = data.presence.needing(_concurrency_mode="single")
    assert len(ppl(half())) == 60
    warned = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert warned == ["clean: 30 of 60 records lack the column 'text'"]


def test_lines_of_other_programs_and_blank_ones_are_read(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [])
    text = "\n".join([json.dumps({"id": 1, "text": "a"}, indent=None), "", "no json", "[1]"])
    dataset.path.write_text(f"{text}\n")
    dataset = type(dataset).of_file(dataset.path)
    assert run(mode_of("single"), dataset, node(tmp_path)).manifest.rows_out == 1
    dataset.path.write_text('no json\n\n{"id": 1}\n')
    with pytest.raises(AbsentColumnError, match="its 1 input record has"):
        run(mode_of("single"), type(dataset).of_file(dataset.path), node(tmp_path, "b"))


def test_an_input_without_any_record_is_another_error(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [])
    dataset.path.write_text('{"id": 1\n')
    with pytest.raises(OutageError, match="all records failed"):
        run(
            mode_of("single"),
            type(dataset).of_file(dataset.path),
            node(tmp_path),
            progress=Listener(),
        )


@data_register("data.presence")
def reading(record: dict, key: str = "text") -> dict:
    return {"made": record[key]}


@pytest.mark.parametrize("mode", ["single", "thread"])
def test_a_key_error_in_every_record_names_the_nearest_column(tmp_path: Path, mode: str) -> None:
    for number in (3, 1000):
        operator = data.presence.reading(key="txet", _concurrency_mode=mode, _max_workers=2)
        with pytest.raises(OutageError, match=r"has: id, text\. Did you mean 'text'\?"):
            run_over(tmp_path, operator, [{"id": 1, "text": "a"}] * number)


def test_a_subclass_of_an_operator_of_the_library_needs_its_columns(tmp_path: Path) -> None:
    class Tidy(data_register.new_group("presence"), data.text.Normalize):
        """An operator of a user."""

    with pytest.raises(AbsentColumnError, match="'text' .the default of input_key."):
        run_over(tmp_path, Tidy(_concurrency_mode="single"), [{"id": 1, "body": "a"}])


def test_outcomes_that_are_used_again_keep_their_counts(tmp_path: Path) -> None:
    operator = data.presence.needing(_concurrency_mode="single", _reuse_outcomes=True)
    run(operator, write_input(tmp_path / "a.jsonl", half(40)), node(tmp_path))
    CALLS.clear()
    more = write_input(tmp_path / "b.jsonl", half(60))
    again = run(operator, more, node(tmp_path), resume=ResumePolicy.AUTO)
    assert lacking(again) == {"text": 30}
    assert len(CALLS) == 20


def test_wide_records_take_little_memory_to_name_their_columns(tmp_path: Path) -> None:
    records = [{f"c{number}_{one}": 1 for one in range(300)} for number in range(100)]
    with pytest.raises(AbsentColumnError) as caught:
        run(mode_of("single"), write_input(tmp_path / "a.jsonl", records), node(tmp_path))
    assert "c0_19, ..." in caught.value.known
    assert len(caught.value.known) < 500


@data_register("data.presence", reads=["text"], _concurrency_mode="process")
def deadly(record: dict) -> dict:
    if record["id"] in {77, 301}:
        os._exit(9)
    return record


@pytest.mark.slow
def test_the_counts_are_exact_if_workers_die(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", half(600))
    made = chain(data.presence.mark(), data.presence.deadly(), _max_workers=2)
    for name, operator in {"alone": data.presence.deadly(_max_workers=2), "chain": made}.items():
        report = run(operator, dataset, node(tmp_path, name))
        assert report.manifest.failed == 2
        assert list(lacking(report).values()) == [300]


@given(
    records=st.lists(st.sets(st.sampled_from("abc")), min_size=1, max_size=12),
    reads=st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
    mode=st.sampled_from(["single", "thread"]),
)
@settings(max_examples=at_most(40), deadline=None)
def test_counts_are_those_of_a_brute_force(records, reads, mode) -> None:
    rows = [{"id": number, **dict.fromkeys(sorted(one), 1)} for number, one in enumerate(records)]
    parts = [data.presence.part(key=key) for key in reads]
    expected: dict[str, int] = {}
    absent = set()
    for number, key in enumerate(reads):
        name = "part" if not number else f"part_{number + 1}"
        lacks = sum(key not in row for row in rows)
        if lacks == len(rows):
            absent.add(key)
        if lacks:
            expected[f"{name}: {key}"] = lacks
    operator = chain(*parts, _concurrency_mode=mode)
    with TemporaryDirectory() as folder:
        dataset = write_input(Path(folder) / "input.jsonl", rows)
        if absent:
            with pytest.raises(AbsentColumnError) as caught:
                run(operator, dataset, node(Path(folder)))
            assert any(f"column {key!r}" in caught.value.column for key in absent)
        else:
            assert lacking(run(operator, dataset, node(Path(folder)))) == expected


@pytest.mark.parametrize("spawned", [False, True], ids=["forked", "spawned"])
@pytest.mark.slow
def test_worker_processes_of_every_kind_count(tmp_path: Path, spawned: bool) -> None:
    dataset = write_input(tmp_path / "input.jsonl", half())
    settings: dict[str, Any] = {"_concurrency_mode": "process", "_fresh_workers": True}
    made = [data.presence.mark(), data.shape.Hash(["id", "text", "made"])]
    with second_thread(spawned):
        report = run(data.presence.needing(**settings), dataset, node(tmp_path, "alone"))
        joined = run(chain(*made, **settings), dataset, node(tmp_path, "chain"))
        with pytest.raises(AbsentColumnError, match="Hash of chain .*'m.d'"):
            wrong = chain(made[0], data.shape.Hash("m.d"), **settings)
            run(wrong, dataset, node(tmp_path, "wrong"))
    assert lacking(report) == {"text": 30}
    assert lacking(joined) == {"Hash: text": 30, "Hash: made": 40}


@pytest.mark.parametrize("kind", ["Csv", "Parquet", "WebDataset"])
def test_with_error_an_export_is_whole_or_not_at_all(tmp_path: Path, kind: str) -> None:
    options: dict[str, Any] = {
        "Csv": {"path": "a.csv", "columns": ["id", "text"]},
        "Parquet": {"path": "a.parquet", "schema": {"text": "string"}},
        "WebDataset": {"pattern": "w/a-%d.tar", "members": {"txt": "text", "cls": "id"}},
    }
    operator = getattr(data.export, kind)(**options[kind], _missing="error")
    with pytest.raises(DatasetOperatorError, match="record 1: .* 'text': its columns are id"):
        run_over(tmp_path, operator, [{"id": 1, "text": "a"}, {"id": 2}], root=tmp_path)
    assert not list(tmp_path.glob("a.*")) + list(tmp_path.glob("w/*"))


@pytest.mark.parametrize(
    "operator",
    [
        data.filters.Field("txet"),
        data.filters.Field("txet", op="exists", value=False),
        data.verify.Fields(required=["txet"]),
        data.verify.Fields(types={"txet": "str"}),
        data.verify.JsonSchema({"type": "object", "required": ["txet"]}),
    ],
)
def test_a_column_that_records_may_lack_is_named_if_all_lack_it(operator, tmp_path) -> None:
    records = [{"id": one, "text": "a"} for one in range(3)]
    report = run(operator, [write_input(tmp_path / "a.jsonl", records)], node(tmp_path / "n"))
    (note,) = [note for note in report.notes if "txet" in note]
    assert note == (
        "none of its 3 input records has column 'txet'. They have: id, text. Did you mean 'text'?"
    )


def test_a_column_that_records_may_lack_is_no_news_if_one_has_it(tmp_path) -> None:
    records = [{"id": 1}, {"id": 2, "text": "a"}]
    dataset = write_input(tmp_path / "a.jsonl", records)
    report = run(data.filters.Field("text"), [dataset], node(tmp_path / "n"))
    assert not any("text" in note for note in report.notes)
