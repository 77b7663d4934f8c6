"""Tests of `max_memory_mb`: the resident memory of operators that keep records."""

import subprocess
import sys
from pathlib import Path

import pytest

_LIMIT_MB = 12
_FEW, _MANY = 1_000, 100_000
_SETUP = f"""
import os, resource, sys
from dagster_dataops import config, data

os.chdir(sys.argv[1])
config.data_process_progress = False
how = {{"_concurrency_mode": "single"}}
limit = {{"max_memory_mb": {_LIMIT_MB}}}
count = int(sys.argv[2])
with open("input.jsonl", "w") as file:
    for n in range(count):
        values = (n, n * 7919 % count, n % 5003, n)
        file.write('{{"id":%d,"s":%d,"g":"%d","text":"%0170d"}}\\n' % values)
"""
_RUN = """
operator.set_output("output.jsonl")(os.path.abspath("input.jsonl"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_MERGED = """
from dagster_dataops import JsonlDataset

rows = JsonlDataset.of_file("input.jsonl")
assert sum(1 for _ in operator.forward_batch_input(iter(rows), iter(rows))) == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_HELD = """
assert operator.forward({"id": 7})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_OPERATORS = {
    "sort": ("data.sample.Sort('s', **limit)", _RUN),
    "group": ("data.sample.GroupBy('g', **limit)", _RUN),
    "top": ("data.sample.TopK('s', 60_000, **limit, **how)", _RUN),
    "top of groups": ("data.sample.TopK('s', 3, group_key='id', **limit, **how)", _RUN),
    "share": ("data.sample.TopK('s', ratio=0.5, **limit, **how)", _RUN),
    "merge": ("data.join.Merge('id', **limit)", _MERGED),
    "merge all": ("data.join.Merge('id', how='outer', max_memory_mb=50)", _MERGED),
    "lookup": ("data.join.Lookup('input.jsonl', on='id', max_memory_mb=24)", _HELD),
}


def peak(folder: Path, name: str, count: int) -> int:
    folder.mkdir()
    operator, run = _OPERATORS[name]
    code = f"{_SETUP}\noperator = {operator}\n{run}"
    command = [sys.executable, "-c", code, str(folder), str(count)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", _OPERATORS)
def test_resident_memory_keeps_to_the_limit(tmp_path: Path, name: str) -> None:
    more = peak(tmp_path / "many", name, _MANY) - peak(tmp_path / "few", name, _FEW)
    limits = {"merge all": 50, "lookup": 24}
    assert more <= limits.get(name, _LIMIT_MB) * 1024 * 5 // 4
