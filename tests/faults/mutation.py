"""Run the tests over a list of mutations of the package, and report those that no test detects.

python tests/faults/mutation.py --workers 2

A mutation replaces one piece of source text by another that breaks a promise, such as a file that
is not synced. Its tests run in a copy of the checkout: first without the mutation, where they must
pass, then with it. A mutation is killed if a test fails. It survives if all pass, so that a test is
missing. ``mutations.toml`` is the list.
"""

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
MUTATIONS: Final = Path(__file__).with_name("mutations.toml")
_COPIED: Final = ("dagster_dataops", "examples", "tests", "definitions.py", "pyproject.toml")
_VERDICTS: Final = {0: "survived", 1: "killed", None: "killed (hung)"}


@dataclass(frozen=True)
class Mutation:
    """One change of the source.

    Attributes:
        file: Path below the package's folder.
        old: The text to replace; it occurs in the file exactly once.
        new: The replacement.
        tests: Paths of test modules or folders, or names of tests, that must detect it.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, root: Path = ROOT) -> str:
        """Return the mutated source."""
        source = (root / "dagster_dataops" / self.file).read_text()
        if source.count(self.old) != 1:
            msg = f"{self.file}: found {source.count(self.old)} times, expected once: {self.old!r}"
            raise ValueError(msg)
        return source.replace(self.old, self.new)


@dataclass(frozen=True)
class Verdict:
    """The result of the tests of a mutation."""

    outcome: str
    seconds: float
    evidence: str


def read_mutations(path: Path = MUTATIONS) -> list[Mutation]:
    """Return the mutations of a list, in its order."""
    entries = tomllib.loads(path.read_text())["mutation"]
    return [Mutation(one["file"], one["old"], one["new"], tuple(one["tests"])) for one in entries]


class Laboratory:
    """Copies of the checkout in which tests run, one for each worker."""

    def __init__(self, folder: Path, workers: int, limit: float) -> None:
        self._limit = limit
        self._copies: queue.Queue[Path] = queue.Queue()
        self._passed: dict[tuple[str, ...], Verdict] = {}
        self._lock = threading.Lock()
        for number in range(workers):
            copy = folder / str(number)
            copy.mkdir()
            for name in _COPIED:
                _copy(ROOT / name, copy / name)
            self._copies.put(copy)

    def judge(self, mutation: Mutation) -> Verdict:
        """Run a mutation's tests without it, then with it."""
        with self._copy() as copy:
            before = self._without(mutation.tests, copy)
            if before.outcome != "survived":
                return Verdict("tests fail without it", before.seconds, before.evidence)
            path = copy / "dagster_dataops" / mutation.file
            source = path.read_text()
            path.write_text(mutation.applied(copy))
            try:
                return self._run(mutation.tests, copy)
            finally:
                path.write_text(source)

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        copy = self._copies.get()
        try:
            yield copy
        finally:
            self._copies.put(copy)

    def _without(self, tests: tuple[str, ...], copy: Path) -> Verdict:
        with self._lock:
            known = self._passed.get(tests)
        if known is None:
            known = self._passed[tests] = self._run(tests, copy)
        return known

    def _run(self, tests: Sequence[str], copy: Path) -> Verdict:
        began = time.monotonic()
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "", "--hypothesis-profile=mutations"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=self._limit)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            status = None
        lines = output.splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        outcome = _VERDICTS.get(status, f"pytest ended with {status}")
        return Verdict(outcome, time.monotonic() - began, (failed[:1] or lines[-1:] or [""])[0])


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)  # with the bytecode of all that is not mutated
    else:
        shutil.copy2(source, target)


def main() -> int:
    """Judge mutations from the command line; return 1 unless all are killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", type=Path, default=MUTATIONS, help="default: %(default)s")
    parser.add_argument("--only", default="", help="mutations of files whose path has this text")
    parser.add_argument("--workers", type=int, default=1, help="test runs at the same time")
    parser.add_argument("--limit", type=float, default=600, help="seconds of one test run")
    given = parser.parse_args()
    chosen = [one for one in read_mutations(given.list) if given.only in one.file]
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(given.workers) as pool,
    ):
        laboratory = Laboratory(Path(folder), given.workers, given.limit)
        for mutation, verdict in zip(chosen, pool.map(laboratory.judge, chosen), strict=True):
            counts[verdict.outcome] += 1
            old = " ".join(mutation.old.split())[:60]
            row = f"{verdict.outcome:12} {verdict.seconds:5.0f} s  {mutation.file}: {old}"
            sys.stdout.write(f"{row}\n{'':20}{verdict.evidence[:140]}\n")
            sys.stdout.flush()
    sys.stdout.write(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + "\n")
    return 0 if all(outcome.startswith("killed") for outcome in counts) else 1


if __name__ == "__main__":
    sys.exit(main())
