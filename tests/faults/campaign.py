"""Kills runs at random and at chosen moments, time and again, and checks what comes of it.

python tests/faults/campaign.py --kills 100 --seed 1

Every round runs one input in one mode. Up to four attempts in a row are killed: the parent, a
worker or two, or all, after a random time or at a chosen step of the engine. The next attempt goes
on from what is left, until one is not killed any more.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import orjson

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dagster_dataops.checkpoints.checkpoint import CheckpointContent, existing
from dagster_dataops.checkpoints.journal import FrameKind, read_frames, read_spans
from dagster_dataops.checkpoints.manifest import NodeFolder, published
from dagster_dataops.datasets.files import draft_of
from tests.faults.crashing import alive_in_session, children_of, wait_until
from tests.faults.moments import IN_PARENT, IN_WORKER
from tests.faults.workloads import WORKLOADS, Row, expected, expected_unique, torn

_ROOT: Final = Path(__file__).parents[2]
_CALL: Final = 12  # bytes: number and time
_SECOND: Final = 1.0
_LATE: Final = 0.3  # between the end of a call and its being written down, on a busy machine
VICTIMS: Final = ("group", "parent", "worker")
MODES: Final = {
    "process": ("quick", "huge", "uneven", "slow", "flaky"),
    "spawned": ("quick", "uneven", "slow", "flaky"),
    "thread": ("few", "slow"),
    "async": ("few", "slow"),
    "single": ("quick", "slow", "flaky"),
    "selection": ("quick", "slow"),
}
_WITH_WORKERS: Final = {"process", "spawned", "selection"}


class Kill(NamedTuple):
    """What was killed, when in the run (``at random`` or a step), and at which time."""

    victim: str
    moment: str
    time: float


@dataclass
class Campaign:
    """What a number of kills came to.

    Attributes:
        kills: How many by mode, victim and moment.
        again: Records worked on again that no checkpoint held yet, for each kill by mode.
        resumed: How many attempts went on from a checkpoint.
        failures: What broke a promise, in words.
    """

    kills: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    again: dict[str, list[int]] = field(default_factory=dict)
    resumed: int = 0
    failures: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the figures as text."""
        rows = [f"{'mode':12}" + "".join(f"{victim:>9}" for victim in VICTIMS) + "  most again"]
        for mode in MODES:
            counts = [self._count(mode=mode, victim=victim) for victim in VICTIMS]
            most = max(self.again.get(mode, [0]))
            rows.append(f"{mode:12}" + "".join(f"{count:9}" for count in counts) + f"{most:12}")
        rows.append(f"{'moment':12}" + "".join(f"{victim:>9}" for victim in VICTIMS))
        for moment in sorted({key[2] for key in self.kills}):
            counts = [self._count(moment=moment, victim=victim) for victim in VICTIMS]
            rows.append(f"{moment:12}" + "".join(f"{count:9}" for count in counts))
        total = sum(self.kills.values())
        rows.append(f"{total} kills, {self.resumed} resumed, {len(self.failures)} failures")
        return "\n".join([*rows, *self.failures])

    def _count(self, mode: str = "", victim: str = "", moment: str = "") -> int:
        wanted = (mode, victim, moment)
        return sum(
            count
            for key, count in self.kills.items()
            if all(w in ("", k) for w, k in zip(wanted, key, strict=True))
        )


def run_campaign(
    kills: int, seed: int, folder: Path, *, modes: tuple[str, ...] = tuple(MODES), scale: float = 1
) -> Campaign:
    """Kill runs until ``kills`` have been killed.

    Args:
        kills: How many.
        seed: Which inputs, victims and moments.
        folder: Where the runs take place; rounds that fail leave their files there.
        modes: Which modes take turns.
        scale: By how much inputs are smaller.
    """
    chance = random.Random(seed)
    campaign = Campaign()
    number = 0
    while sum(campaign.kills.values()) < kills:
        mode = modes[number % len(modes)]
        left = kills - sum(campaign.kills.values())
        home = folder / f"{number:04d}-{mode}"
        round_ = Round(home, mode, random.Random(chance.random()), campaign, scale)
        round_.play(min(left, chance.randint(1, 4)))
        number += 1
    return campaign


class Round:
    """One input in one mode, killed a few times, then finished and looked at."""

    def __init__(
        self, home: Path, mode: str, chance: random.Random, campaign: Campaign, scale: float
    ) -> None:
        self._home = home
        self._mode = mode
        self._chance = chance
        self._campaign = campaign
        self._name = chance.choice(MODES[mode])
        self._workload = WORKLOADS[self._name]
        self._rows: list[Row] = self._workload.rows(chance, scale)
        self._longest_wait = 0.7 if scale == 1 else 0.3
        self._node = NodeFolder(home / "node", "node")
        self._attempts = 0
        self._settled: set[int] = set()
        home.mkdir(parents=True)
        lines = [orjson.dumps(row) + b"\n" for row in self._rows]
        (home / "input.jsonl").write_bytes(b"".join(lines))
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def play(self, kills: int) -> None:
        try:
            for _ in range(kills):
                if not self._attempt(killing=True):
                    break
            else:
                self._attempt(killing=False)
            self._check_result()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            what = f"{self._home.name} {self._name}, attempt {self._attempts}: {error}"
            self._campaign.failures.append(what[:600])
            return
        subprocess.run(["rm", "-r", str(self._home)], check=True)

    # ------------------------------------------------------------ one attempt

    def _attempt(self, *, killing: bool) -> bool:
        """Start an attempt and kill something of it; return whether the next one must go on."""
        self._attempts += 1
        committed = draft_of(self._node.manifest).exists()
        moment = self._order() if killing else ""
        process = self._start(moment)
        try:
            kills = list(self._kill(process, moment)) if killing else []
            status = process.wait(90)
        finally:
            self._end(process)
        assert status in (0, -9), f"status {status}: {self._output()[-900:]}"
        wait_until(lambda: not alive_in_session(process.pid), 2, "the end of all its processes")
        for kill in kills:
            self._campaign.kills[self._mode, kill.victim, kill.moment] += 1
        assert status == 0 or any(kill.victim != "worker" for kill in kills), self._output()
        assert "damaged" not in self._output(), self._output()
        self._check_calls(kills, committed=committed)
        if status == 0:
            return False
        self._look_at_checkpoint(kills)
        return True

    def _order(self) -> str:
        """Return what MOMENT is to be, or nothing for a kill after a random time."""
        if self._chance.random() < 0.4:
            return ""
        in_worker = self._mode in _WITH_WORKERS and self._chance.random() < 0.5
        moments = IN_WORKER if in_worker else IN_PARENT
        name = self._chance.choice(list(moments))
        call = int(moments[name][3] ** self._chance.random() + 0.5)
        side = self._chance.choice(("before", "after"))
        victim = self._chance.choice(VICTIMS)
        return f"{name}:{call}:{side}:{victim}:{self._home}"

    def _start(self, moment: str) -> "subprocess.Popen[bytes]":
        (self._home / "struck").unlink(missing_ok=True)
        added = {"CALLS": str(self._calls_path), "PYTHONPATH": str(_ROOT)}
        if moment:
            added["MOMENT"] = moment
        arguments = [str(self._home), self._mode, self._name]
        runs = [f"attempt-{number}" for number in range(self._attempts, 0, -1)]
        with (self._home / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.faults.victim", *arguments, *runs],
                cwd=_ROOT,
                env=os.environ | added,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _kill(self, process: "subprocess.Popen[bytes]", moment: str) -> Iterator[Kill]:
        if moment:
            process.wait(90)
            struck = self._home / "struck"
            if struck.exists():
                name, _, _, victim, _ = moment.split(":", 4)
                if victim == "worker" and process.returncode:
                    victim = "parent"  # it was the parent that came by
                yield Kill(victim, name, float(struck.read_text() or time.monotonic()))
            return
        victims = VICTIMS if self._mode in _WITH_WORKERS else VICTIMS[:2]
        victim = self._chance.choice(victims)
        if self._chance.random() < 0.8:  # else before the first record, or anywhere
            wait_until(
                lambda: self._calls_path.exists() or process.poll() is not None,
                60,
                "the first call",
            )
        for _ in range(self._chance.randint(1, 2) if victim == "worker" else 1):
            time.sleep(self._chance.uniform(0, self._longest_wait))
            now = time.monotonic()
            if process.poll() is None and self._strike(process.pid, victim):
                yield Kill(victim, "at random", now)

    def _strike(self, pid: int, victim: str) -> bool:
        workers = children_of(pid) if victim == "worker" else []
        try:
            if victim == "group":
                os.killpg(pid, signal.SIGKILL)
            elif victim == "parent" or workers:
                os.kill(self._chance.choice(workers or [pid]), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return victim != "worker" or bool(workers)

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _output(self) -> str:
        return (self._home / "output.txt").read_text()

    # ------------------------------------------------------------ what was worked on

    @property
    def _calls_path(self) -> Path:
        return self._home / f"calls-{self._attempts}"

    def _calls(self) -> list[tuple[int, float]]:
        """Return the calls of this attempt: record and time of its end."""
        import struct

        data = self._calls_path.read_bytes() if self._calls_path.exists() else b""
        return list(struct.iter_unpack("<Id", data[: len(data) // _CALL * _CALL]))

    def _check_calls(self, kills: list[Kill], *, committed: bool) -> None:
        """Nothing settled is worked on again, nor anything that was long finished at a kill."""
        first: dict[int, float] = {}
        repeated: dict[int, float] = {}
        for record, moment in sorted(self._calls(), key=lambda call: call[1]):
            if record in first:
                repeated[record] = first[record]
            first.setdefault(record, moment)
        again = sorted(self._settled & first.keys())
        assert not again, f"{len(again)} settled records run again, the first of them {again[0]}"
        assert not (committed and first), f"{len(first)} calls, though only renames were left"
        if any(kill.victim == "worker" for kill in kills):
            self._campaign.again.setdefault(self._mode, []).append(len(repeated))
        self._check_fresh(repeated, [kill for kill in kills if kill.victim == "worker"])

    def _check_fresh(self, lost: dict[int, float], kills: list[Kill]) -> None:
        """Refuse losses that were finished more than a second before every kill."""
        allowed = _SECOND + self._workload.longest + _LATE
        for record, moment in lost.items():
            ages = [kill.time - moment for kill in kills]
            assert any(-_LATE <= age <= allowed for age in ages), (
                f"record {record} was finished {ages} s before the kills {kills}, and lost"
            )

    def _look_at_checkpoint(self, kills: list[Kill]) -> None:
        """Note what is settled now, and whether anything was lost that was long finished."""
        before, self._settled = self._settled, self._settled_now()
        gone = before - self._settled
        assert not gone, f"{len(gone)} records are not settled any more"
        lost = {n: moment for n, moment in self._calls() if n not in self._settled}
        self._campaign.again.setdefault(self._mode, []).append(len(lost))
        self._campaign.resumed += bool(self._settled)
        self._check_fresh(lost, kills)

    def _settled_now(self) -> set[int]:
        everything = set(range(len(self._rows)))
        if draft_of(self._node.manifest).exists() or published(self._node):
            return everything
        found = [content for content in existing(self._node.checkpoints) if len(content.table)]
        assert len(found) <= 1, f"{len(found)} checkpoints with settled records"
        settled: set[int] = set()
        for content in found:
            self._check_overlaps(content)
            for span, _, _ in content.table.ordered():
                begin = bisect_left(self._starts, span.start)
                end = bisect_left(self._starts, span.start + span.length)
                settled.update(range(begin, end))
        return settled

    def _check_overlaps(self, content: CheckpointContent) -> None:
        """No two spans of a journal are of the same record."""
        written = 0
        for kind, payload in read_frames((content.folder / "journal").read_bytes()):
            if kind == FrameKind.SPANS:
                spans = read_spans(payload)
                assert spans is not None
                written += len(spans.columns[0])
        assert written == len(content.table), "settled twice: the journal refuses spans of its own"

    # ------------------------------------------------------------ what came of it

    def _check_result(self) -> None:
        result = self._node.result.read_bytes()
        if self._workload.differing and self._mode != "selection":
            wrong = next(torn(result, self._rows), None)
            assert wrong is None, wrong
        else:
            wanted = expected_unique if self._mode == "selection" else expected
            assert result == wanted(self._rows), "wrong bytes in the result"
        bad = [row["n"] for row in self._rows if row["bad"]]
        errors = self._node.errors.read_bytes().splitlines() if self._node.errors.exists() else []
        found = [orjson.loads(line) for line in errors]
        assert [row["index"] for row in found] == bad, "wrong error rows"
        for row in found:
            facts = (row["line"], row["message"], row["input"], row["attempts"])
            n = row["index"]
            assert facts == (n + 1, f"bad {n}", self._rows[n], 1), f"wrong error row {row}"
        manifest = orjson.loads(self._node.manifest.read_bytes())
        counts = (manifest["rows_in"], manifest["rows_out"], manifest["failed"])
        assert counts == (len(self._rows), result.count(b"\n"), len(bad)), f"wrong counts {counts}"
        ours = {self._node.result, self._node.manifest, self._node.path / ".lock"}
        of_failures = {self._node.errors, self._node.kept} if bad else set()
        stray = set(self._node.path.iterdir()) - ours - of_failures
        assert not stray, f"left over: {sorted(map(str, stray))}"


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    parser.add_argument("--keep", type=Path, help="where failed rounds leave their files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.keep or Path(folder)
        campaign = run_campaign(given.kills, given.seed, place, modes=tuple(given.modes))
    sys.stdout.write(campaign.table() + "\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
