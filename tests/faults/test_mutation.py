"""The list of mutations, and the command that judges them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.each import each
from tests.faults.mutation import ROOT, Mutation, read_mutations

_MUTATIONS = read_mutations()


@each("mutation", _MUTATIONS)
def test_every_mutation_of_the_list_changes_today_s_source(mutation: Mutation) -> None:
    compile(mutation.applied(), mutation.file, "exec")
    assert mutation.new != mutation.old
    assert all((ROOT / path.split("::")[0]).exists() for path in mutation.tests)


def test_no_mutation_is_listed_twice() -> None:
    assert len({(one.file, one.old, one.new) for one in _MUTATIONS}) == len(_MUTATIONS)


@pytest.mark.slow
def test_the_command_distinguishes_killed_mutations_from_survivors(tmp_path: Path) -> None:
    listed = tmp_path / "mutations.toml"
    listed.write_text(
        """
[[mutation]]
file = "foundation/quantities.py"
old = "if number == 1 else"
new = "if number == 2 else"
tests = ["tests/foundation/test_parts.py::test_the_unit_agrees_with_the_number"]

[[mutation]]
file = "foundation/quantities.py"
old = "def counted("
new = "def  counted("
tests = ["tests/foundation/test_parts.py::test_the_unit_agrees_with_the_number"]
"""
    )
    command = [sys.executable, "tests/faults/mutation.py", "--list", str(listed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "1 killed, 1 survived"
