"""Worker processes and operator modules that take long to import, as a table.

>>> python benchmarks/imports.py [--rounds N]

Each case is a new process with a new operator module. The module takes a second to import, records
every process that imports it, and may import numpy, whose threads prevent forking. The measured
package is the one that Python finds: set ``PYTHONPATH`` to compare two versions.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODULE = """
import os, time
NUMPY
from dagster_dataops import data_register

with open("imports.log", "a") as log:
    log.write(f"{os.getpid()}\\n")
until = CLOCK() + SECONDS
while CLOCK() < until:
    PAUSE


@data_register("data.slow_import", _concurrency_mode="process")
def same(record):
    return record


@data_register("data.slow_import", _concurrency_mode="process")
def burns(record):
    until = time.process_time() + 0.01
    while time.process_time() < until:
        pass


@data_register("data.slow_import", _concurrency_mode="process")
def waits(record):
    time.sleep(0.1)
"""
_SLEEPS = {"CLOCK": "time.monotonic", "PAUSE": "time.sleep(0.01)"}
_COMPUTES = {"CLOCK": "time.process_time", "PAUSE": "pass"}


@dataclass(frozen=True)
class Case:
    """One measurement.

    Attributes:
        name: The name in the table.
        operator: The operator of the module.
        nodes: The number of nodes with it.
        records: The number of records.
        workers: ``_max_workers`` of each node.
        numpy: Whether the module imports numpy.
        computes: Whether its import computes for a second, or sleeps.
    """

    name: str
    operator: str = "same"
    nodes: int = 1
    records: int = 1_000
    workers: int = 2
    numpy: bool = True
    computes: bool = True


CASES = (
    Case("8 nodes, numpy", nodes=8, computes=False),
    Case("8 nodes, no numpy", nodes=8, computes=False, numpy=False),
    Case("16 tiny records, 16 workers", records=16, workers=16),
    Case("500 records of 10 ms, 2 workers", "burns", records=500),
    Case("500 records of 10 ms, 16 workers", "burns", records=500, workers=16),
    Case("500 waits of 100 ms, 2 workers", "waits", records=500),
    Case("500 waits of 100 ms, 16 workers", "waits", records=500, workers=16),
)


def measured(case: Case) -> dict[str, Any]:
    """Return the report of one new process for a case."""
    replaced = {
        "NUMPY": "import numpy" if case.numpy else "",
        "SECONDS": "1.0",
        **(_COMPUTES if case.computes else _SLEEPS),
    }
    code = MODULE
    for name, value in replaced.items():
        code = code.replace(name, value)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "slow_import.py").write_text(code)
        given = json.dumps(vars(case))
        command = [sys.executable, str(Path(__file__).absolute()), "--case", given]
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path}
        environment.pop("OPENBLAS_NUM_THREADS", None)
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True
        )
        found: dict[str, Any] = json.loads(done.stdout)
        pids = Path(folder, "imports.log").read_text().split()
        return {**found, "imports": len(pids) - 1}  # one is the parent's


def run_case(given: dict[str, Any]) -> None:
    """Run one case in this process and print its times."""
    import slow_import

    from dagster_dataops import config, pipeline
    from dagster_dataops.pipelines.local_run import materialize

    case = Case(**given)
    config.data_process_progress = False
    config.data_process_path = Path("results").absolute()
    with pipeline("chain") as ppl:
        for number in range(case.nodes):
            ppl.add(
                f"node_{number}", getattr(slow_import, case.operator)(_max_workers=case.workers)
            )
    records = [{"n": n, "text": "To be, or not to be"} for n in range(case.records)]
    before, began = os.times(), time.monotonic()
    reports = materialize(ppl.graph, records, scratch=Path.cwd())
    seconds, after = time.monotonic() - began, os.times()
    assert all(report.manifest.rows_out == case.records for report in reports.values())
    told = {
        "seconds": seconds,
        "nodes": [report.seconds for report in reports.values()],
        "cpu": sum(after[:2]) - sum(before[:2]),
    }
    print(json.dumps(told))


def main() -> None:
    """Measure all cases in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", type=json.loads, help="of one process; not for the command line")
    given = parser.parse_args()
    if given.case:
        run_case(given.case)
        return
    runs: dict[str, list[dict[str, Any]]] = {case.name: [] for case in CASES}
    for _ in range(given.rounds):
        for case in CASES:
            runs[case.name].append(measured(case))
    print(f"{'case':34} {'seconds':>8} {'first node':>11} {'later nodes':>12} {'imports':>8}")
    for case in CASES:
        found = runs[case.name]
        later = [second for run in found for second in run["nodes"][1:]]
        print(
            f"{case.name:34} {statistics.median(run['seconds'] for run in found):8.2f}"
            f" {statistics.median(run['nodes'][0] for run in found):11.2f}"
            f" {f'{statistics.median(later):.4f}' if later else '':>12}"
            f" {'/'.join(str(run['imports']) for run in found):>8}"
        )
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
