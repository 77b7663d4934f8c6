"""Every record operator of the library can be sent to a worker process."""

import subprocess
import sys
from pathlib import Path

import pytest

from dagster_dataops import Drop
from tests.library.test_hostile_texts import calls_of, made, operators
from tests.sent_operators import receive, ship

TEXT = "The river rises early in spring. People walk along its banks, and look for 7 stones."
_RECEIVE = (
    "import pickle, sys\n"
    "from dagster_dataops.operators.pickling import receive\n"
    "names = [type(receive(payload)).__name__ for payload in pickle.load(sys.stdin.buffer)]\n"
    "print(*names)\n"
)


@pytest.mark.parametrize("name", [name for name in operators() if name != "score.Model"])
def test_a_sent_operator_gives_the_same_result(name: str) -> None:
    operator = made(name)
    again = receive(ship(operator))

    def outcome(one):
        try:
            found = calls_of(one)({"text": TEXT})
        except Exception as error:  # noqa: BLE001 - the same for both
            return repr(error)
        return found.reason if isinstance(found, Drop) else found

    assert outcome(again) == outcome(operator)


def test_operators_are_sent_by_name_although_dagster_is_in_use() -> None:
    import dagster_dataops

    _ = dagster_dataops.build_definitions  # now the package holds a name of its layer for Dagster
    payload = ship(made("verify.Python"))
    assert len(payload) < 3000
    assert type(receive(payload)) is type(made("verify.Python"))


@pytest.mark.slow
def test_another_process_can_receive_them() -> None:
    import pickle

    names = ["chat.Render", "chunk.Tokens", "tokens.Count", "verify.JsonSchema", "verify.Python"]
    payloads = pickle.dumps([ship(made(name)) for name in names])
    done = subprocess.run(
        [sys.executable, "-c", _RECEIVE],
        input=payloads,
        capture_output=True,
        cwd=Path.cwd(),
        check=False,
    )
    assert done.stdout.split() == [b"Render", b"Tokens", b"Count", b"JsonSchema", b"Python"], done
