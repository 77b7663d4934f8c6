"""Tests of dagster_dataops.operators.chains.chain: pickling, secrets, options."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dagster_dataops import chain, config, data
from dagster_dataops.errors import ChainDefinitionError, OperatorOptionError
from dagster_dataops.operators.chains.chain import Chain
from dagster_dataops.operators.definition.operator import exporting, reconfigured
from dagster_dataops.operators.options.settings import ExecutionSettings
from dagster_dataops.operators.pickling import receive, ship
from tests.operators.chain_parts import act  # noqa: F401 - registers the operators


def made() -> Any:
    return chain(data.chained.act(part=1), data.chained.counted(step=3), name="made")


def test_a_chain_is_sent_to_another_process_with_its_parts() -> None:
    factor = 3

    def times(record: dict) -> Any:  # type: ignore[type-arg]
        return {"n": record["n"] * factor}

    sent = chain(times, data.chained.Opened(log="x", label="y"), name="made", _max_workers=5)
    payload = ship(sent)
    back = receive(payload)
    assert isinstance(back, Chain)
    assert [part.name for part in back.parts] == ["times", "Opened"]
    assert back.__dataops__.settings.max_workers == 5
    assert back.__dataops__.spec.opens
    assert vars(back.parts[1].operator)["label"] == "y"


def test_processes_that_are_not_forked_run_a_chain_of_a_script(run_python: Any) -> None:
    said = run_python(
        """
import threading
from dagster_dataops import chain, config, data, data_register

def double(record: dict):
    return [record, {**record, "copy": True}]

@data_register("data.own")
def shout(record, end="!"):
    return {**record, "text": record["text"] + end}

class Keep(data.own):
    def __init__(self, n, **given):
        super().__init__(**given)
        self.n = n
    def forward(self, record):
        return record if record["n"] % self.n else []

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # no fork beside it
    with config.temporary(data_process_path="results", data_process_progress=False):
        made = chain(double, shout(end="?"), Keep(2), _max_workers=2)
        found = made([{"n": n, "text": "x"} for n in range(4)])
    print(len(found), {row["text"] for row in found}, [row["n"] for row in found])
"""
    )
    assert said.strip() == "4 {'x?'} [1, 1, 3, 3]"


def test_options_of_parts_are_replaced_by_the_names_of_the_parts() -> None:
    changed = reconfigured(made(), {"counted": {"step": 7}}, ExecutionSettings(max_workers=2))
    assert changed.__dataops__.options == {"act": {"part": 1}, "counted": {"step": 7}}
    assert changed.__dataops__.options_digest != made().__dataops__.options_digest
    assert changed.__dataops__.resolved.max_workers == 2
    with pytest.raises(OperatorOptionError, match="'acts' is no part of the chain"):
        reconfigured(made(), {"acts": {}}, ExecutionSettings())
    with pytest.raises(OperatorOptionError, match="stepp"):
        reconfigured(made(), {"counted": {"stepp": 7}}, ExecutionSettings())


def test_a_chain_shows_its_parts() -> None:
    assert repr(made()) == "chain(data.chained.act(part=1), data.chained.counted(step=3))"
    spec = made().__dataops__.spec
    assert spec.reference == "chain(data.chained.act, data.chained.counted)"
    assert spec.description.splitlines() == [
        "A chain of 2 record operators:",
        "",
        "1. `act`: Do what the record says for this part.",
        "1. `counted`",
    ]
    assert exporting(made(), Path("x")).__dataops__.output == Path("x")


def test_the_error_survives_pickling() -> None:
    import pickle

    error = ChainDefinitionError("made", "part a is a reader")
    assert str(pickle.loads(pickle.dumps(error))) == "Chain 'made': part a is a reader"


def test_the_package_loads_no_dagster_for_a_chain() -> None:
    code = "import sys; from dagster_dataops import chain; print('dagster' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
    assert config is not None
