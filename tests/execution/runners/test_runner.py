from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops.execution.runners.runner import Runner, make_runner, takes_separately
from dagster_dataops.operators.kinds.kind_table import kinds
from tests.execution.helpers import act, turn_around, write_input


def test_every_kind_of_operator_has_a_runner() -> None:
    for kind in kinds():
        module, _, name = kind.runner.partition(":")
        assert Runner in getattr(import_module(module), name).__mro__


@pytest.mark.parametrize(
    ("operator", "name"),
    [(act, "RecordRunner"), (turn_around, "DatasetRunner")],
    ids=["record", "dataset"],
)
def test_the_kind_of_an_operator_chooses_its_runner(
    tmp_path: Path, operator: Any, name: str
) -> None:
    dataset = write_input(tmp_path / "input.jsonl", [{"n": 1}])
    made = make_runner(operator(), [dataset])
    assert type(made).__name__ == name
    assert made.fingerprint.input == dataset.identity
    assert made.records == (dataset if name == "RecordRunner" else None)


def test_inputs_are_concatenated_unless_an_operator_takes_as_many() -> None:
    assert not takes_separately(act().__dataops__.spec, 1)
    assert takes_separately(turn_around().__dataops__.spec, 1)
    assert not takes_separately(turn_around().__dataops__.spec, 2)
