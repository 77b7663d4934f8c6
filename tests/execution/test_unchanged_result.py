"""Tests of the note about an operator that changed nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import JsonlDataset, chain, data, data_register
from dagster_dataops.execution.unchanged_result import returns_nothing
from tests.each import each
from tests.execution.helpers import node, run, write_input

RECORDS = [{"id": n, "text": f"text {n}", "x": 1.0} for n in range(50)]
PLAIN = "changed 0 of 50 records"
FORGOTTEN = f"{PLAIN}; its function returns nothing: is a `return` missing?"


@data_register("data.unchanged")
def forgot(record: dict) -> None:
    dict(record, up=record["text"].upper())


@data_register("data.unchanged")
def in_place(record: dict) -> None:
    record["up"] = record["text"].upper()


@data_register("data.unchanged")
def same(record: dict) -> dict:
    return record


@data_register("data.unchanged")
def last_changes(record: dict) -> dict:
    return {**record, "text": "z"} if record["id"] == 49 else record


@data_register("data.unchanged")
def some_fail(record: dict) -> dict:
    if record["id"] % 10 == 3:
        raise ValueError
    return record


@data_register("data.unchanged")
def some_fail_others_change(record: dict) -> dict:
    if record["id"] % 10 == 3:
        raise ValueError
    return {**record, "n": 1}


@data_register("data.unchanged")
def to_integers(record: dict) -> dict:
    return {**record, "x": int(record["x"])}


@data_register("data.unchanged")
def other_order(record: dict) -> dict:
    return dict(reversed(record.items()))


@data_register("data.unchanged")
def drops_one(record: dict) -> Any:
    return [] if record["id"] == 3 else record


@data_register("data.unchanged")
async def forgot_async(record: dict) -> None:
    dict(record, up=1)


@data_register("data.unchanged", rewrite_func="forward_batch")
def same_batch(records: list) -> list:
    return records


@data_register("data.unchanged", rewrite_func="forward_batch_input")
def all_of_them(records: list) -> list:
    return records


class Forgotten(data_register.new_group("unchanged")):
    def forward(self, record: dict) -> None:
        dict(record)


def cases() -> dict[str, tuple[Any, tuple[str, ...]]]:
    made = data.unchanged
    return {
        "forgot": (made.forgot(), (FORGOTTEN,)),
        "class": (made.Forgotten(), (FORGOTTEN,)),
        "async": (made.forgot_async(), (FORGOTTEN,)),
        "in_place": (made.in_place(), ()),
        "same": (made.same(), (PLAIN,)),
        "batch": (made.same_batch(), (PLAIN,)),
        "last": (made.last_changes(), ()),
        "failing": (made.some_fail(), ("changed 0 of 45 records",)),
        "failing_changing": (made.some_fail_others_change(), ()),
        "integers": (made.to_integers(), ()),
        "order": (made.other_order(), ()),
        "drops": (made.drops_one(), ()),
        "dataset": (made.all_of_them(), ()),
        "filter": (data.filters.TextLength(min_chars=1), ()),
        "length": (data.text.LengthFilter(), ()),
        "rate": (data.sample.Rate(1.0), ()),
        "mapper": (data.text.NormalizeWhitespace(), (PLAIN,)),
        "cast": (data.shape.Cast({"id": "int"}), (PLAIN,)),
        "drop": (data.shape.Drop("y", _missing="allow"), (PLAIN,)),
        "against": (data.dedup.Against([{"text": "other"}]), ()),
        "benchmark": (data.decontaminate.NGrams([{"query": "q", "label": "l"}]), ()),
        "language": (data.language.Script(), ()),
        "tokens": (data.chat.Validate(input_key="text", _missing="allow"), ()),
        "selection": (data.dedup.Exact(), ()),
        "chain": (chain(made.same(), made.forgot()), (PLAIN,)),
        "chain_of_filters": (chain(data.filters.TextLength(), data.text.LengthFilter()), ()),
    }


def of_another_program(path: Path) -> JsonlDataset:
    path.write_text("".join(f"{json.dumps(record)}\r\n" for record in RECORDS))
    return JsonlDataset.of_file(path)


@pytest.mark.slow
@each("name", cases())
def test_an_operator_that_changed_nothing_says_so(name: str, tmp_path: Path) -> None:
    operator, notes = cases()[name]
    dataset = write_input(tmp_path / "input.jsonl", RECORDS)
    other = of_another_program(tmp_path / "other.jsonl")
    for place, given in {"ours": dataset, "other": other}.items():
        report = run(operator, given, node(tmp_path / place, name))
        assert report.notes == notes, place


def test_several_inputs_are_compared_together(tmp_path: Path) -> None:
    given = [write_input(tmp_path / f"{n}.jsonl", RECORDS[n * 25 :][:25]) for n in range(2)]
    assert run(data.unchanged.same(), given, node(tmp_path)).notes == (PLAIN,)


@pytest.mark.parametrize("made", ["forgot", "in_place", "Forgotten", "forgot_async"])
def test_functions_that_return_nothing_are_known_by_their_code(made: str) -> None:
    assert returns_nothing(getattr(data.unchanged, made)())


@pytest.mark.parametrize("made", ["same", "drops_one", "same_batch"])
def test_functions_that_return_something_are_known_by_their_code(made: str) -> None:
    assert not returns_nothing(getattr(data.unchanged, made)())
