"""W7: one record: a pipeline against its necessary imports; the import, and the first run."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.figures import Figure
from benchmarks.measuring import ROOT

_ROUNDS = 11
_BARE = "import orjson, tqdm"
_PIPELINE = """
from dagster_dataops import config, data_register, pipeline

@data_register("data.demo", _concurrency_mode={mode!r})
def shout(record: dict):
    record["text"] = record["text"].upper()

config.data_process_path = {folder!r}
with pipeline("cold") as ppl:
    ppl.shout = shout()
assert ppl([{{"text": "hello"}}]) == [{{"text": "HELLO"}}]
"""
_FIRST_RUN = """
import os, sys, tempfile, time

os.chdir(tempfile.mkdtemp(dir={folder!r}))
began = time.perf_counter()
from dagster_dataops import data_register

imported = time.perf_counter()

@data_register("data.first", _concurrency_mode="single")
def up(record):
    record["n"] += 1
    return record

assert up()([{{"n": 1}}]) == [{{"n": 2}}]
ended = time.perf_counter()
modules = sum(name.partition(".")[0] == "dagster_dataops" for name in sys.modules)
print((imported - began) * 1000, (ended - imported) * 1000, modules)
"""


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the time of a cold start beyond the imports, in each mode, and of a first run."""
    rounds = max(_ROUNDS, bench.rounds)
    yield import_and_first_run(rounds)
    for mode in ("process", "thread", "single"):
        yield beyond_imports(mode, rounds)


def import_and_first_run(rounds: int) -> Figure:
    """Return the milliseconds of the import and of the first run of one record, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        script = _FIRST_RUN.format(folder=folder)
        command = [sys.executable, "-c", script]
        found = [
            subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout
            for _ in range(rounds)
        ]
    rows = [tuple(map(float, one.split())) for one in found]
    imports, runs, modules = (statistics.median(column) for column in zip(*rows, strict=True))
    return Figure(
        workload="W7",
        name="import and first run",
        value=statistics.median(one[0] + one[1] for one in rows),
        unit="ms",
        most=96,
        note=f"import {imports:.0f} ms, run {runs:.0f} ms, {modules:.0f} modules of the package",
    )


def beyond_imports(mode: str, rounds: int) -> Figure:
    """Return the milliseconds for one record beyond the necessary imports."""
    with tempfile.TemporaryDirectory() as folder:
        script = _PIPELINE.format(mode=mode, folder=folder)
        pairs = [(_milliseconds(_BARE), _milliseconds(script)) for _ in range(rounds)]
    bare = statistics.median(before for before, _ in pairs)
    whole = statistics.median(after for _, after in pairs)
    return Figure(
        workload="W7",
        name=f"one record, {mode}",
        value=statistics.median(after - before for before, after in pairs),
        unit="ms more",
        most=150,
        note=f"{whole:.0f} ms, imports alone {bare:.0f} ms",
    )


def _milliseconds(script: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True)
    return (time.perf_counter() - began) * 1000
