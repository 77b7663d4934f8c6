"""Kills runs at random instants, resumes them until they finish, and checks what came of it.

python tests/faults/campaign.py --kills 100 --seed 1
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.crashing import Script, alive, children_of, killed_at_exit, wait_until

MODES: Final = ("process", "spawned", "thread", "async", "single")
VICTIMS: Final = ("group", "parent", "worker")
_WORKERS: Final = 3

_CODE: Final = """
def act(record):
    time.sleep(record["seconds"])
    if record["n"] % 11 == 5:
        raise ValueError(f"bad {record['n']}")
    returned = {"n": record["n"], "text": record["text"][::-1]}
    log("calls.log", f"{record['n']} {time.monotonic()}")
    return [returned] * (record["n"] % 3)

@data_register("data.campaign", _max_workers=WORKERS)
def work(record):
    return act(record)

@data_register("data.campaign", _max_workers=WORKERS)
async def work_async(record):
    await asyncio.sleep(0)
    return act(record)

mode = sys.argv[1]
if mode == "spawned":  # a second thread forbids forking
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
if mode == "async":
    operator = data.campaign.work_async()
else:
    operator = data.campaign.work(_concurrency_mode="process" if mode == "spawned" else mode)
report = run(operator, run=f"attempt-{os.getpid()}", earlier_runs=frozenset(sys.argv[2:]))
print("done", report.manifest.resumed, flush=True)
"""


@dataclass
class Campaign:
    """What a number of kills came to.

    Attributes:
        kills: How many processes or groups were killed, by mode and victim.
        redone: Calls beyond one a record, for each attempt that was killed or finished, by mode.
        failures: What broke a promise, in words.
    """

    kills: Counter[tuple[str, str]] = field(default_factory=Counter)
    redone: dict[str, list[int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the figures as text."""
        rows = [f"{'mode':10} {'group':>6} {'parent':>7} {'worker':>7} {'most redone':>12}"]
        for mode in MODES:
            counts = [self.kills[mode, victim] for victim in VICTIMS]
            most = max(self.redone.get(mode, [0]))
            rows.append(f"{mode:10} {counts[0]:6} {counts[1]:7} {counts[2]:7} {most:12}")
        total = sum(self.kills.values())
        return "\n".join([*rows, f"{total} kills, {len(self.failures)} failures", *self.failures])


def records_of(count: int, chance: random.Random) -> list[dict[str, object]]:
    """Return records of which some take a hundred times as long as others."""
    return [
        {"n": n, "text": f"text {n} é", "seconds": chance.choice([0, 0.002, 0.002, 0.01, 0.1])}
        for n in range(count)
    ]


def run_campaign(kills: int, seed: int, folder: Path, records: int = 150) -> Campaign:
    """Kill runs until ``kills`` have been killed.

    Args:
        kills: How many.
        seed: Which instants, victims and inputs.
        folder: Where the runs take place.
        records: Of each run's input.
    """
    chance = random.Random(seed)
    campaign = Campaign()
    round_number = 0
    while sum(campaign.kills.values()) < kills:
        mode = MODES[round_number % len(MODES)]
        home = folder / f"{round_number:03d}-{mode}"
        home.mkdir(parents=True)
        left = kills - sum(campaign.kills.values())
        _Round(home, mode, chance, campaign, records).play(min(3, left))
        round_number += 1
    return campaign


class _Round:
    """One input, killed a few times in one mode, then finished and compared."""

    def __init__(
        self, home: Path, mode: str, chance: random.Random, campaign: Campaign, records: int
    ) -> None:
        self._mode = mode
        self._chance = chance
        self._campaign = campaign
        self._script = Script(home, f"WORKERS = {_WORKERS}\n{_CODE}")
        self._records = records_of(records, chance)
        lines = "".join(json.dumps(record) + "\n" for record in self._records)
        (home / "input.jsonl").write_text(lines)
        self._killed: list[str] = []
        self._bound = 0  # how many records may have been done again by now
        self._redone = 0  # how many have

    def play(self, kills: int) -> None:
        try:
            for _ in range(kills):
                self._kill_once()
            self._script.finish(self._mode, *self._killed)
            self._check()
        except AssertionError as error:
            self._campaign.failures.append(f"{self._script.folder.name}: {error}")

    def _kill_once(self) -> None:
        victims = VICTIMS if self._mode in {"process", "spawned"} else VICTIMS[:2]
        victim = self._chance.choice(victims)
        before = len(self._script.log("calls.log"))
        with killed_at_exit(self._script.start(self._mode, *self._killed)) as process:
            self._killed.append(f"attempt-{process.pid}")
            if self._chance.random() < 0.8:  # else before the first record, or anywhere
                self._wait_for_calls(process, before + 1)
            time.sleep(self._chance.uniform(0, 0.6))
            if process.poll() is not None:
                return
            self._campaign.kills[self._mode, victim] += 1
            workers = children_of(process.pid)
            now = time.monotonic()
            self._strike(process.pid, victim, workers)
            if victim == "worker":
                status = process.wait(60)
                assert status == 0, f"a worker's death ended the run: {self._script.output()}"
                workers = []
            else:
                process.wait(10)
            wait_until(lambda: not alive(workers), 2, "the workers end with their parent")
        self._count_redone()
        self._count_losses(now)

    def _wait_for_calls(self, process: object, calls: int) -> None:
        poll = process.poll  # type: ignore[attr-defined]
        wait_until(
            lambda: len(self._script.log("calls.log")) >= calls or poll() is not None,
            30,
            "the first call",
        )

    def _strike(self, pid: int, victim: str, workers: list[int]) -> None:
        target = self._chance.choice(workers) if victim == "worker" and workers else pid
        try:
            if victim == "group":
                os.killpg(pid, signal.SIGKILL)
            elif victim == "parent" or workers:
                os.kill(target, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _count_losses(self, killed_at: float) -> None:
        """Add what this kill may cost: calls in flight, and those of the last second before it."""
        times = [float(entry[2]) for entry in self._script.log("calls.log") if len(entry) == 3]
        recent = sum(killed_at - 1.0 <= moment <= killed_at + 0.2 for moment in times)
        self._bound += recent + _WORKERS

    def _count_redone(self) -> int:
        """Count calls beyond one a record, and note how many this attempt has added."""
        calls = [entry[1] for entry in self._script.log("calls.log") if len(entry) == 3]
        redone = len(calls) - len(set(calls))
        self._campaign.redone.setdefault(self._mode, []).append(redone - self._redone)
        self._redone = redone
        return redone

    def _check(self) -> None:
        result = (self._script.folder / "node" / "node_results.jsonl").read_text()
        assert result == _expected(self._records), "wrong bytes in the result"
        errors = (self._script.folder / "node" / "node_error.jsonl").read_text().splitlines()
        failed = [json.loads(line)["index"] for line in errors]
        assert failed == [n for n in range(len(self._records)) if n % 11 == 5], "wrong error rows"
        redone = self._count_redone()
        assert redone <= self._bound, f"{redone} records redone, at most {self._bound} may be"
        manifest = json.loads(
            (self._script.folder / "node" / "node_results.jsonl.json").read_text()
        )
        assert manifest["rows_in"] == len(self._records)
        assert not (self._script.folder / "node" / "checkpoints").exists(), "checkpoint left over"


def _expected(records: list[dict[str, object]]) -> str:
    rows = []
    for record in records:
        n, text = int(str(record["n"])), str(record["text"])
        if n % 11 != 5:
            row = json.dumps(
                {"n": n, "text": text[::-1]}, ensure_ascii=False, separators=(",", ":")
            )
            rows += [row + "\n"] * (n % 3)
    return "".join(rows)


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=150)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        campaign = run_campaign(given.kills, given.seed, Path(folder), given.records)
    sys.stdout.write(campaign.table() + "\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
