"""Tests of foundation: parts, names loaded on first use, numbers in words."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dagster_dataops
from dagster_dataops.foundation.parts import ADDED, function_of_part
from dagster_dataops.foundation.quantities import counted, percentage


@pytest.mark.parametrize("name", ADDED)
def test_each_line_names_a_function_of_an_optional_part(name):
    assert callable(function_of_part(name))


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
    ppl.long = data.filters.TextLength(input_key="text", min_chars=1)
build_definitions(ppl, source="docs.jsonl").get_repository_def()
ours = [name for name in sys.modules if name.partition(".")[0] == "dagster_dataops"]
parts = ("cooking", "filestores", "loading", "cluster", "models", "reporting")
print(len(ours), sorted({part for part in parts for name in ours if part in name.split(".")}))
"""


RUN = """
import sys
before = set(sys.modules)
from dagster_dataops import data_register

@data_register("data.lean", _concurrency_mode="single")
def up(record):
    record["n"] += 1
    return record

assert up()([{"n": 1}]) == [{"n": 2}]
ours = [name for name in sys.modules if name.partition(".")[0] == "dagster_dataops"]
parts = ("training", "cluster", "models", "reporting", "chain_calls", "agents", "streams")
heavy = {"asyncio", "ctypes", "decimal", "hashlib", "importlib.metadata", "multiprocessing"}
heavy |= {"sqlite3", "typing_extensions"}
found = {part for part in parts for name in ours if f".{part}." in f"{name}."}
print(len(ours), sorted(found | heavy.intersection(sys.modules) - before))
"""


def test_a_plain_run_of_a_record_loads_few_modules_and_nothing_slow(run_python):
    modules, others = run_python(RUN).split(maxsplit=1)
    assert others.strip() == "[]"
    assert int(modules) <= 166


@pytest.mark.slow
def test_definitions_of_text_operators_load_few_modules_and_no_optional_part(run_python):
    modules, parts = run_python(DEFINE).split(maxsplit=1)
    assert parts.strip() == "[]"
    assert int(modules) <= 250


@pytest.mark.parametrize("stub", ["__init__.pyi", "assets/__init__.pyi", "readers/__init__.pyi"])
def test_every_line_of_a_stub_exports_what_it_imports(stub):
    """Type checkers take ``import name as name`` for an export, and no other import."""
    text = (Path(dagster_dataops.__file__).parent / stub).read_text()
    assigned = dict(re.findall(r"^(\w+) = (\w+)$", text, re.MULTILINE))
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            (alias,) = node.names
            assert alias.asname in {alias.name, *assigned.values()}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'pipelne'"):
        _ = dagster_dataops.pipelne


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1234, "1,234 records")],
)
def test_the_unit_agrees_with_the_number(number, text):
    assert counted(number, "records") == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0 %"),
        (0.00049, "0.05 %"),
        (0.001, "0.1 %"),
        (2 / 3, "66.7 %"),
        (0.9999, "99.9 %"),
        (1, "100.0 %"),
        (1.5, "150.0 %"),
    ],
)
def test_a_percentage_is_zero_only_for_none_and_a_hundred_only_for_all(share, text):
    assert percentage(share) == text
