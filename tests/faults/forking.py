"""Run worker processes from a parent whose threads are always busy.

python tests/faults/forking.py --count 500 --seed 1

A child forked while another thread holds a lock would wait for it forever. The threads here hold
various locks, such as those of logging and of the import system, and start processes all the time.
"""

import argparse
import faulthandler
import importlib
import logging
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dagster_dataops.data import data_register
from tests.execution.helpers import lines, node, run, write_input
from tests.faults.crashing import HANG_SECONDS

_LOCK = threading.RLock()
_LOG = logging.getLogger("tests.faults.forking")
_LOG.addHandler(logging.NullHandler())  # whose lock is taken for every line
_LOG.propagate = False
_MODULES = ("colorsys", "fractions", "netrc", "wave", "sched", "quopri")
_DEADLOCK_SECONDS = HANG_SECONDS


@data_register("data.forking", _max_workers=2, _concurrency_mode="process")
def touch_everything(record):
    """Take every lock that a thread of the parent may have held."""
    with _LOCK:
        _LOG.warning("record %d", record["n"])
    sys.modules.pop(_MODULES[record["n"] % len(_MODULES)], None)
    importlib.import_module(_MODULES[record["n"] % len(_MODULES)])
    return {"n": record["n"], "text": "x" * record["n"]}


def _hold_a_lock() -> None:
    with _LOCK:
        time.sleep(0.0005)


def _write_a_log_line() -> None:
    _LOG.warning("busy")


def _import_something() -> None:
    for name in _MODULES:
        sys.modules.pop(name, None)
        importlib.import_module(name)


def _start_a_process() -> None:
    subprocess.run(["true"], check=True)
    time.sleep(0.05)


_BUSY: tuple[Callable[[], None], ...] = (
    _hold_a_lock,
    _write_a_log_line,
    _import_something,
    _start_a_process,
)


@contextmanager
def busy_threads() -> Iterator[None]:
    """Keep four threads busy inside a ``with`` block."""
    end = threading.Event()

    def repeat(work: Callable[[], None]) -> None:
        while not end.is_set():
            work()
            time.sleep(0.002)

    threads = [threading.Thread(target=repeat, args=(work,)) for work in _BUSY]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        end.set()
        for thread in threads:
            thread.join()


def run_often(count: int, seed: int, folder: Path, workers: int = 2) -> float:
    """Run ``count`` times from a busy parent and return the seconds of the slowest run."""
    chance = random.Random(seed)
    slowest = 0.0
    with busy_threads():
        for number in range(count):
            home = folder / f"{number:04d}"
            records = [{"n": n} for n in range(chance.randrange(1, 60))]
            dataset = write_input(home / "input.jsonl", records)
            faulthandler.dump_traceback_later(_DEADLOCK_SECONDS, exit=True)
            began = time.monotonic()
            run(touch_everything(_max_workers=workers), dataset, node(home))
            slowest = max(slowest, time.monotonic() - began)
            faulthandler.cancel_dump_traceback_later()
            expected = lines({"n": r["n"], "text": "x" * r["n"]} for r in records)
            assert node(home).result.read_bytes() == expected, f"run {number}"
    return slowest


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        slowest = run_often(given.count, given.seed, Path(folder))
    sys.stdout.write(f"{given.count} runs, none hung; the slowest took {slowest:.1f} s\n")
    return 0


if __name__ == "__main__":
    from tests.faults import forking  # by its name: workers import the operator's module

    sys.exit(forking.main())
