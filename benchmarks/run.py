"""Measure everything, print a table of figures and goals, write them to benchmarks/results.

>>> python benchmarks/run.py [--only W1,W4] [--size small|full] [--rounds N] [--peers FOLDER]
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[0] = str(HERE.parent)

from benchmarks.bench import Bench, collected
from benchmarks.figures import FAILED, Figure, save, table
from benchmarks.processes import clean_up_when_terminated
from benchmarks.workloads import WORKLOADS


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(WORKLOADS), help="of " + ", ".join(WORKLOADS))
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peers", type=Path, help="folder of virtual environments, see install.sh")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, save; return 1 if a workload failed or gave a wrong result."""
    chosen = arguments(given)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as folder:
        bench = Bench(
            folder=Path(folder),
            full=chosen.size == "full",
            rounds=chosen.rounds,
            workers=chosen.workers,
            peers=chosen.peers,
        )
        for name in chosen.only.split(","):
            figures += collected(name, WORKLOADS[name], bench)
    print(f"\nsize {chosen.size}, load {os.getloadavg()[0]:.1f}")
    print(table(figures))
    print(f"written to {save(figures, chosen.results)}")
    return int(any(figure.name == FAILED for figure in figures))


if __name__ == "__main__":
    clean_up_when_terminated()
    sys.exit(main())
