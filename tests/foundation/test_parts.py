"""Tests of foundation.parts: each line of the table names a function that exists."""

import subprocess
import sys

import pytest

from dagster_dataops.foundation.parts import ADDED, added


@pytest.mark.parametrize("name", ADDED)
def test_each_line_names_a_function_of_an_optional_part(name):
    assert callable(added(name))


def test_the_table_imports_no_part():
    shown = "[m for m in sys.modules if 'filestores' in m]"
    code = f"import sys, dagster_dataops.foundation.parts; print({shown})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


DEFINE = """
import sys
from pathlib import Path
from dagster_dataops import build_definitions, data, pipeline

Path("docs.jsonl").write_text('{"text": "a"}\\n')
with pipeline("docs") as ppl:
    ppl.clean = data.text.NormalizePunctuation(input_key="text")
    ppl.even = data.text.NormalizeWhitespace(input_key="text")
build_definitions(ppl, source="docs.jsonl").get_repository_def()
ours = [name for name in sys.modules if name.partition(".")[0] == "dagster_dataops"]
parts = ("cooking", "filestores", "loading", "cluster", "models", "reporting")
print(len(ours), sorted({part for part in parts for name in ours if part in name.split(".")}))
"""


def test_definitions_of_text_operators_load_few_modules_and_no_optional_part(run_python):
    modules, parts = run_python(DEFINE).split(maxsplit=1)
    assert parts.strip() == "[]"
    assert int(modules) <= 250
