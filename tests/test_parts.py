"""Tests of dagster_dataops.parts: each line of the table names a function that exists."""

import subprocess
import sys

import pytest

from dagster_dataops.parts import ADDED, added


@pytest.mark.parametrize("name", ADDED)
def test_each_line_names_a_function_of_an_optional_part(name):
    assert callable(added(name))


def test_the_table_imports_no_part():
    code = "import sys, dagster_dataops.parts; print([m for m in sys.modules if 'filestores' in m])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
