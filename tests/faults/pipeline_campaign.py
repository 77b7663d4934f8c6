"""Kill random pipelines at random instants, and compare every result with a reference.

python tests/faults/pipeline_campaign.py --cases 100 --seed 1

Each case is a pipeline of up to four nodes over an input of up to 600 lines. Up to four attempts in
a row are killed, alone or with their workers; then one runs to its end.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.random_pipelines import Expected, Plan, interpret
from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.nodes import Manifest, NodeFolder, published

_ROOT: Final = Path(__file__).parents[2]
_MOST_KILLS: Final = 4
_LONGEST_WAIT: Final = 1.5  # seconds before a kill
_HUNG: Final = 300.0  # seconds after which an attempt counts as hung


@dataclass
class Tally:
    """The results of a campaign: cases, kills, and each broken promise in words."""

    cases: int = 0
    kills: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = f"{self.cases} pipelines, {self.kills} kills, {len(self.wrong)} wrong"
        return "\n".join([*self.wrong, counts])


def run_pipelines(cases: int, seed: int, folder: Path) -> Tally:
    """Run the pipelines of ``cases`` seeds from ``seed`` on."""
    tally = Tally()
    for number in range(seed, seed + cases):
        home = folder / f"pipeline-{number}"
        try:
            tally.kills += _play(home, number)
            wrong = list(_faults(home, number))
        except (AssertionError, subprocess.TimeoutExpired) as error:
            wrong = [str(error)]
        tally.cases += 1
        tally.wrong += [f"pipeline {number}: {fault}"[:900] for fault in wrong]
        if not wrong:
            shutil.rmtree(home)
    return tally


def _play(home: Path, seed: int) -> int:
    """Run one pipeline to its end; return the number of killed attempts."""
    chance = random.Random(-seed - 1)
    home.mkdir(parents=True)
    (home / "input.jsonl").write_bytes(Plan.draw(seed).text)
    kills = 0
    for _ in range(chance.randint(0, _MOST_KILLS)):
        process = _start(home, seed)
        try:
            process.wait(chance.uniform(0, _LONGEST_WAIT))
            break  # it was done before
        except subprocess.TimeoutExpired:
            kills += 1
            strike = chance.choice([os.killpg, os.kill])
            strike(process.pid, signal.SIGKILL)
            process.wait()
    last = _start(home, seed)
    try:
        status = last.wait(_HUNG)
    finally:
        if last.poll() is None:
            os.killpg(last.pid, signal.SIGKILL)
            last.wait()
    assert status == 0, f"status {status}: {(home / 'output.txt').read_text()[-600:]}"
    return kills


def _start(home: Path, seed: int) -> StartedProcess:
    with (home / "output.txt").open("ab") as output:
        return warm_interpreter("dagster_dataops.pipelines.pipeline").start(
            ["-m", "tests.faults.random_pipelines", str(home), str(seed)],
            output.fileno(),
            folder=_ROOT,
            environment=os.environ | {"PYTHONPATH": str(_ROOT)},
        )


def _faults(home: Path, seed: int) -> Iterator[str]:
    """Yield the differences from the reference."""
    for name, expected in interpret(Plan.draw(seed)).items():
        folder = NodeFolder(home / "results" / "random" / name, name)
        for fault in _faults_of(folder, expected):
            yield f"{name}: {fault}"


def _faults_of(folder: NodeFolder, expected: Expected) -> Iterator[str]:
    wanted = b"".join(orjson.dumps(row) + b"\n" for row in expected.rows)
    found = folder.result.read_bytes()
    if found != wanted:
        yield f"its result has {len(found)} bytes that differ from the {len(wanted)} expected"
    text = folder.errors.read_bytes() if folder.errors.exists() else b""
    failed = [orjson.loads(line)["index"] for line in text.splitlines()]
    if failed != expected.failed:
        yield f"records {failed[:9]} failed instead of {expected.failed[:9]}"
    manifest = Manifest.load(folder.manifest)
    counts = (len(expected.rows), len(expected.failed))
    if manifest is None or (manifest.rows_out, manifest.failed) != counts:
        yield f"its manifest is {manifest}, expected {counts} records and failures"
    if published(folder) is None:
        yield "its result does not count as published"
    stray = {path.name for path in folder.path.iterdir()} & {"checkpoints", ".removed"}
    stray |= {path.name for path in folder.path.glob("*.draft")}
    if stray:
        yield f"it left {sorted(stray)}"


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where wrong cases leave their files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = run_pipelines(given.cases, given.seed, given.keep or Path(folder))
    sys.stdout.write(f"{tally}\n")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
