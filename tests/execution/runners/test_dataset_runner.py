from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dagster_dataops import data, load_result
from dagster_dataops.data import data_register
from dagster_dataops.errors import (
    DatasetOperatorError,
    OperatorDefinitionError,
    RecordError,
    RunStoppedError,
)
from tests.execution.helpers import (
    Listener,
    error_rows,
    lines,
    look_at_every_tick,
    node,
    run,
    write_input,
)

_GROUP = "data.whole_tests"
_RECORDS = [{"n": n} for n in range(10)]


@data_register(_GROUP, rewrite_func="forward_batch_input")
def turn(records):
    return records[::-1]


@data_register(_GROUP, rewrite_func="forward_batch_input")
def pairs(records: Iterable[dict]) -> Iterator[dict]:
    for record in records:
        if record["n"] % 2:
            yield {"odd": record["n"]}


@data_register(_GROUP, rewrite_func="forward_batch_input")
def join(left: list[dict], right: list[dict]):
    return [{**one, **other} for one, other in zip(left, right, strict=False)]


@data_register(_GROUP, rewrite_func="forward_batch_input")
def returns(records, value=None):
    return value


@data_register(_GROUP, rewrite_func="forward_batch_input")
def breaks(records, error=None):
    yield {"n": 1}
    raise error


@data_register(_GROUP, rewrite_func="forward_batch_input")
def yields(records, value=None):
    yield {"n": 1}
    yield value
    yield {"n": 2}


@pytest.fixture
def dataset(tmp_path: Path):
    return write_input(tmp_path / "input.jsonl", _RECORDS)


def test_a_list_of_records_gives_a_list_of_records(tmp_path: Path, dataset) -> None:
    report = run(turn(), dataset, node(tmp_path))
    assert report.dataset.read() == _RECORDS[::-1]
    assert (report.manifest.rows_in, report.manifest.rows_out) == (10, 10)


def test_records_are_streamed_if_the_annotation_is_an_iterator(tmp_path: Path, dataset) -> None:
    report = run(pairs(), dataset, node(tmp_path))
    assert report.dataset.read() == [{"odd": n} for n in range(1, 10, 2)]
    assert report.manifest.dropped == 5


@pytest.mark.parametrize(
    ("made", "inputs"),
    [
        (lambda: data.sample.GroupBy("n"), 1),
        (lambda: data.stats.Summary(["n"]), 1),
        (lambda: data.join.Merge("n"), 2),
    ],
)
def test_no_record_is_dropped_by_an_operator_that_makes_new_ones(
    tmp_path: Path, dataset, made, inputs: int
) -> None:
    manifest = run(made(), [dataset] * inputs, node(tmp_path)).manifest

    assert (manifest.new_records, manifest.dropped) == (True, 0)
    assert manifest.made_text.endswith(f" from {10 * inputs}")


def test_an_operator_may_say_that_it_makes_new_records(tmp_path: Path, dataset) -> None:
    class Total(data_register.new_group(_GROUP.removeprefix("data."))):
        new_records = True

        def forward_batch_input(self, records):
            return [{"records": len(records)}]

    told, untold = (run(one, dataset, node(tmp_path / kind)).manifest
                    for kind, one in (("told", Total()), ("untold", pairs())))  # fmt: skip
    assert (told.made_text, told.dropped) == ("1 record from 10", 0)
    assert (untold.new_records, untold.dropped) == (False, 5)


def test_two_datasets_are_handed_over_separately(tmp_path: Path, dataset) -> None:
    other = write_input(tmp_path / "other.jsonl", [{"m": n} for n in range(10)])
    report = run(join(), [dataset, other], node(tmp_path))
    assert report.dataset.read() == [{"n": n, "m": n} for n in range(10)]


def test_two_datasets_are_joined_for_an_operator_that_takes_one(tmp_path: Path, dataset) -> None:
    report = run(turn(), [dataset, dataset], node(tmp_path))
    assert report.dataset.read() == (_RECORDS + _RECORDS)[::-1]


def test_a_function_may_say_that_it_makes_new_records(tmp_path: Path, dataset) -> None:
    @data_register(_GROUP, rewrite_func="forward_batch_input", new_records=True)
    def counts(records):
        return [{"records": len(records)}]

    assert run(counts(), dataset, node(tmp_path)).manifest.made_text == "1 record from 10"
    with pytest.raises(OperatorDefinitionError, match="new_records is for operators with forward_"):
        data_register(_GROUP, new_records=True)(lambda record: record)


@pytest.mark.parametrize("value", [None, 3, {"a": 1}, "text", b"bytes"])
def test_an_object_that_is_not_a_dataset_is_refused(tmp_path: Path, dataset, value: object) -> None:
    with pytest.raises(DatasetOperatorError, match=f"it returned a {type(value).__name__}"):
        run(returns(value=value), dataset, node(tmp_path))
    assert not node(tmp_path).result.exists()


@pytest.mark.parametrize("value", [1, None, [], "x"])
@pytest.mark.parametrize("operator", [returns, yields])
def test_an_element_that_is_not_a_record_is_named(
    tmp_path: Path, dataset, operator, value: object
) -> None:
    given = [{"n": 1}, value] if operator is returns else value
    with pytest.raises(DatasetOperatorError, match=f"element 1 .* {type(value).__name__}, not a"):
        run(operator(value=given), dataset, node(tmp_path))


def test_an_element_that_json_cannot_hold_is_named(tmp_path: Path, dataset) -> None:
    with pytest.raises(DatasetOperatorError, match="element 1 of its result: key 'a' holds a set"):
        run(yields(value={"a": {1}}), dataset, node(tmp_path))


@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(3), OSError("disk")])
def test_an_exception_fails_the_step_and_leaves_the_previous_result(
    tmp_path: Path, dataset, error: BaseException
) -> None:
    run(turn(), dataset, node(tmp_path))
    with pytest.raises(DatasetOperatorError, match=f"{type(error).__name__}: {error}") as caught:
        run(breaks(error=error), dataset, node(tmp_path))
    assert caught.value.__cause__ is error
    assert load_result(node(tmp_path)).read() == _RECORDS[::-1]
    assert not list(node(tmp_path).path.glob(".*.draft"))


def test_an_interrupt_is_raised(tmp_path: Path, dataset) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(breaks(error=KeyboardInterrupt()), dataset, node(tmp_path))


def test_a_bad_line_fails_the_step_where_failures_are_not_ignored(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    write_input(path, _RECORDS)
    path.write_bytes(path.read_bytes() + b"\nbad\n")
    dataset = type(write_input(tmp_path / "x", [])).of_file(path)
    for operator in (turn, pairs):
        with pytest.raises(RecordError, match="record 10 .*line 12"):
            run(operator(_ignore_errors=False), dataset, node(tmp_path))
    run(turn(), dataset, node(tmp_path))
    assert [(row["index"], row["line"]) for row in error_rows(node(tmp_path))] == [(10, 12)]


def test_progress_and_stopping(tmp_path: Path, dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    look_at_every_tick(monkeypatch)
    listener = Listener()
    run(pairs(), dataset, node(tmp_path), progress=listener)
    assert listener.states[-1].records == 10
    assert len(listener.states) > 3
    with pytest.raises(RunStoppedError, match="enough"):
        run(pairs(), dataset, node(tmp_path), run="x", should_stop=lambda: "enough")


def test_the_operators_changes_stay_its_own(tmp_path: Path, dataset) -> None:
    before = dataset.path.read_bytes()

    @data_register(_GROUP, rewrite_func="forward_batch_input")
    def clears(records):
        for record in records:
            record.clear()
        return records

    run(clears(), dataset, node(tmp_path))
    assert dataset.path.read_bytes() == before
    assert node(tmp_path).result.read_bytes() == lines([{}] * 10)


def plain_without_a_type(record):
    return {**record, "n": record["n"] + 1}


def plain_with_a_list(records: list) -> list:
    return records["n"]  # type: ignore[call-overload, no-any-return]


def test_a_plain_function_that_gets_all_records_says_how_to_get_one(tmp_path: Path) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    hint = r"It got the list of all records; annotate .*\(record: dict\).* to get one record"
    for function in (
        plain_without_a_type,
        lambda record: {"n": record["n"]},
        lambda record: {"n": 1},
        lambda record: [1],
    ):
        operator = data_register.of_function(function, "up")
        with pytest.raises(DatasetOperatorError, match=hint):
            run(operator, dataset, node(tmp_path))
    with pytest.raises(DatasetOperatorError) as caught:
        run(data_register.of_function(plain_with_a_list, "up"), dataset, node(tmp_path))
    assert "It got" not in str(caught.value)
