"""Kill agents, workers and heads at random moments; the result must be that of a run at home.

python -m tests.execution.cluster.kill_campaign --kills 200
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from dagster_dataops import JsonlDataset
from tests.execution.cluster.fixtures import Watched, input_of, works
from tests.execution.helpers import node, run
from tests.nodes import ResumePolicy

_MIXED: Final = ["keep", "fail", "twice", "drop", "keep", "keep"]
_LONGEST_WAIT: Final = 1.5
_PATIENCE_SECONDS: Final = 20.0  # until there is a victim
_HANG_SECONDS: Final = 600.0


def main() -> None:
    """Run the campaign and print what was killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = campaign(Path(folder), given.kills, given.seed, shown=True)
        sys.stdout.write(f"{told}\n")


def campaign(folder: Path, kills: int, seed: int, *, shown: bool = False) -> dict[str, int]:
    """Kill until ``kills`` processes have died, over as many results as that takes.

    Returns:
        The number of victims of each kind, and of results.
    """
    chance = random.Random(seed)
    dataset = input_of(folder, _MIXED * 150)
    home = run(works(), dataset, node(folder / "home"))
    told = {"worker": 0, "agent": 0, "head": 0, "results": 0}
    while sum(told.values()) - told["results"] < kills:
        place = folder / f"away{told['results']}"
        while _killed(dataset, place, chance, told):
            pass
        away, expected = node(place), node(folder / "home")
        assert away.result.read_bytes() == expected.result.read_bytes(), (seed, told)
        assert away.errors.read_bytes() == expected.errors.read_bytes(), (seed, told)
        report = run(works(seconds=0.004), dataset, away, reuse_finished=True)
        assert report.manifest.drops == home.manifest.drops, (seed, told)
        told["results"] += 1
        if shown:
            sys.stderr.write(f"{told}\n")
    return told


def _killed(
    dataset: JsonlDataset, place: Path, chance: random.Random, told: dict[str, int]
) -> bool:
    """Continue a run, and kill some of its processes; return whether the run was killed."""
    head = os.fork()
    if not head:
        os.setpgid(0, 0)
        cluster = Watched(agents=2, cpus_per_agent=2)
        status = 1
        try:
            run(
                works(seconds=0.004),
                dataset,
                node(place),
                cluster=cluster,
                resume=ResumePolicy.AUTO,
                lock_seconds=30,
            )
            status = 0
        finally:
            os._exit(status)
    until = time.monotonic() + _HANG_SECONDS
    for _ in range(chance.randrange(4)):
        time.sleep(chance.random() * _LONGEST_WAIT)  # a random moment is what is tested
        kind = chance.choice(["worker", "worker", "agent", "agent", "head"])
        patience = time.monotonic() + _PATIENCE_SECONDS
        while not (victims := _kill_one(head, kind, chance)) and time.monotonic() < patience:
            if psutil.Process(head).status() == psutil.STATUS_ZOMBIE:
                break
            time.sleep(0.05)
        told[kind] += victims
    while time.monotonic() < until:
        found, status = os.waitpid(head, os.WNOHANG)
        if found:
            killed = os.WIFSIGNALED(status)
            assert killed or os.waitstatus_to_exitcode(status) == 0, status
            return killed
        time.sleep(0.05)
    os.killpg(head, signal.SIGKILL)
    raise AssertionError(f"the run hangs: {told}")


def _kill_one(head: int, kind: str, chance: random.Random) -> int:
    """Kill a process of a kind, if there is one; return the number of victims."""
    found: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        me = psutil.Process(head)
        if me.status() == psutil.STATUS_ZOMBIE:
            return 0
        agents = [one for one in me.children() if "agent_process" in " ".join(one.cmdline())]
        families = [child for one in agents for child in one.children(recursive=True)]
        found = {"head": [me], "agent": agents, "worker": families}[kind]
        if found:
            chance.choice(found).kill()
    return int(bool(found))


if __name__ == "__main__":
    main()
