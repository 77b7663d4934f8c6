"""W7: a pipeline over one record, import included, against its necessary imports."""

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


def measure(bench: Bench) -> Iterator[Figure]:
    """Yield the time of a cold start beyond the imports, in each mode."""
    for mode in ("process", "thread", "single"):
        yield beyond_imports(mode, max(_ROUNDS, bench.rounds))


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
