"""Kills runs that write a stream, time and again, and checks what comes of it.

python tests/faults/stream_campaign.py --kills 100 --seed 1

Every round writes one kind of stream. Up to five attempts in a row are killed, alone or with all
their workers, after a random time or at a chosen step of the engine; then one is left alone.
"""

import argparse
import logging
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dagster_dataops.checkpoints.manifest import NodeFolder
from dagster_dataops.checkpoints.positions import read_positions
from dagster_dataops.datasets.files import draft_of
from tests.faults.crashing import alive_in_session, wait_until
from tests.faults.moments import IN_STREAM
from tests.faults.stream_victim import BAD_EVERY, CALL, KINDS, make

_ROOT: Final = Path(__file__).parents[2]
_LATE: Final = 0.5  # between the end of a call and its position, on a busy machine
VICTIMS: Final = ("group", "parent")


@dataclass
class StreamCampaign:
    """What a number of kills came to.

    Attributes:
        kills: How many by kind of stream, victim and moment.
        again: Items worked on again after each kill.
        oldest: Seconds before its kill that the oldest of them was finished.
        resumed: How many attempts went on from a position.
        failures: What broke a promise, in words.
    """

    kills: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    again: list[int] = field(default_factory=list)
    oldest: float = 0.0
    resumed: int = 0
    failures: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the figures as text."""
        by_kind = Counter[str]()
        for (kind, _, _), count in self.kills.items():
            by_kind[kind] += count
        moments = Counter[str]()
        for (_, _, moment), count in self.kills.items():
            moments[moment] += count
        summary = (
            f"{sum(self.kills.values())} kills, {self.resumed} attempts went on, at most "
            f"{max(self.again, default=0)} items again, the oldest {self.oldest:.2f} s old, "
            f"{len(self.failures)} failures"
        )
        return "\n".join(
            [
                *(f"{kind:14}{count:6}" for kind, count in sorted(by_kind.items())),
                *(f"  {moment:14}{count:6}" for moment, count in sorted(moments.items())),
                summary,
                *self.failures,
            ]
        )


def run_stream_campaign(
    kills: int, seed: int, folder: Path, *, kinds: tuple[str, ...] = KINDS, items: int = 1500
) -> StreamCampaign:
    """Kill runs until ``kills`` have been killed; arguments as `campaign.run_campaign`."""
    chance = random.Random(seed)
    campaign = StreamCampaign()
    number = 0
    while sum(campaign.kills.values()) < kills:
        kind = kinds[number % len(kinds)]
        round_ = _Round(folder / f"{number:04d}-{kind}", kind, chance, campaign, items)
        round_.play(min(kills - sum(campaign.kills.values()), chance.randint(1, 5)))
        number += 1
    return campaign


class _Round:
    """One stream, killed a few times, then finished and looked at."""

    def __init__(
        self, home: Path, kind: str, chance: random.Random, campaign: StreamCampaign, items: int
    ) -> None:
        self._home, self._kind, self._chance, self._campaign = home, kind, chance, campaign
        self._node = NodeFolder(home / "node", "node")
        self._attempts = 0
        self._seconds = chance.choice((0.0002, 0.001))
        self._flush = chance.choice((0.05, 0.3, 1.0))
        self._latest: dict[int, tuple[float, int]] = {}  # by item: last call, in which attempt
        self._killed: dict[int, float] = {}
        home.mkdir(parents=True)
        for name, start, count in (("first", 0, items * 2), ("second", items * 2, items)):
            rows = [{"n": n, "text": f"text {n} é"} for n in range(start, start + count)]
            text = b"".join(orjson.dumps(row) + b"\n" for row in rows)
            (home / f"{name}.jsonl").write_bytes(text)

    def play(self, kills: int) -> None:
        try:
            for _ in range(kills):
                if not self._attempt(killing=True):
                    break
            else:
                self._attempt(killing=False)
            self._check_result()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            what = f"{self._home.name}, attempt {self._attempts}: {error}"
            self._campaign.failures.append(what[:900])
            return
        subprocess.run(["rm", "-r", str(self._home)], check=True)

    def _attempt(self, *, killing: bool) -> bool:
        """Start an attempt and perhaps kill it; return whether the next one must go on."""
        self._attempts += 1
        committed = draft_of(self._node.manifest).exists()
        moment = self._order() if killing and self._chance.random() < 0.5 else ""
        process = self._start(moment)
        kill: tuple[str, str, float] | None = None
        try:
            if killing:
                kill = self._kill(process, moment)
            status = process.wait(90)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        assert status in (0, -9), f"status {status}: {self._output()[-900:]}"
        wait_until(lambda: not alive_in_session(process.pid), 4, "the end of all its processes")
        if kill is not None:
            self._campaign.kills[self._kind, kill[0], kill[1]] += 1
            self._killed[self._attempts] = kill[2]
        calls = self._calls()
        assert not (committed and calls), f"{len(calls)} calls, though only renames were left"
        self._check_calls(calls)
        if status:
            self._campaign.resumed += bool(self._positions())
        return status != 0

    def _order(self) -> str:
        name = self._chance.choice(list(IN_STREAM))
        call = int(IN_STREAM[name][3] ** self._chance.random() + 0.5)
        side = self._chance.choice(("before", "after"))
        return f"{name}:{call}:{side}:{self._chance.choice(VICTIMS)}:{self._home}"

    def _start(self, moment: str) -> "subprocess.Popen[bytes]":
        (self._home / "struck").unlink(missing_ok=True)
        added = {"CALLS": str(self._calls_path), "PYTHONPATH": str(_ROOT)}
        if moment:
            added["MOMENT"] = moment
        runs = [f"attempt-{number}" for number in range(self._attempts, 0, -1)]
        given = [str(self._home), self._kind, str(self._seconds), str(self._flush), *runs]
        with (self._home / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.faults.stream_victim", *given],
                cwd=_ROOT,
                env=os.environ | added,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _kill(
        self, process: "subprocess.Popen[bytes]", moment: str
    ) -> tuple[str, str, float] | None:
        if moment:
            process.wait(90)
            struck = self._home / "struck"
            name, _, _, victim, _ = moment.split(":", 4)
            if not struck.exists():
                return None
            return victim, name, float(struck.read_text() or time.monotonic())
        if self._chance.random() < 0.9:  # else before the first item, or anywhere
            begun = lambda: self._calls_path.exists() or process.poll() is not None  # noqa: E731
            wait_until(begun, 60, "the first call")
        time.sleep(self._chance.uniform(0, 1.2))
        victim = self._chance.choice(VICTIMS)
        if process.poll() is not None:
            return None
        now = time.monotonic()
        if victim == "group":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        return victim, "at random", now

    def _output(self) -> str:
        return (self._home / "output.txt").read_text()

    @property
    def _calls_path(self) -> Path:
        return self._home / f"calls-{self._attempts}"

    def _calls(self) -> list[tuple[int, float]]:
        """Return the calls of this attempt: item and time of its end."""
        data = self._calls_path.read_bytes() if self._calls_path.exists() else b""
        return list(struct.iter_unpack("<Id", data[: len(data) // CALL.size * CALL.size]))

    def _positions(self) -> list[Any]:
        found = sorted(self._node.checkpoints.glob("*/journal"))
        return [one for journal in found for one in read_positions(journal).positions]

    def _check_calls(self, calls: list[tuple[int, float]]) -> None:
        """Only what was finished in the last second before a kill is worked on again."""
        again = 0
        twice = [item for item, count in Counter(n for n, _ in calls).items() if count > 1]
        assert not twice, f"items {twice[:5]} were worked on twice in one attempt"
        for item, moment in calls:
            if item in self._latest:
                again += 1
                last, attempt = self._latest[item]
                age = self._killed[attempt] - last
                self._campaign.oldest = max(self._campaign.oldest, age)
                assert age <= self._flush + _LATE, (
                    f"item {item} was finished {age:.2f} s before attempt {attempt} was killed, "
                    f"with {self._flush} s between positions, and worked on again"
                )
            self._latest[item] = moment, self._attempts
        if self._attempts > 1:
            self._campaign.again.append(again)

    def _check_result(self) -> None:
        stream = make(self._home, self._kind, 0)
        wanted = b"".join(orjson.dumps(item) + b"\n" for item in stream)
        assert self._node.result.read_bytes() == wanted, "wrong bytes in the result"
        manifest = orjson.loads(self._node.manifest.read_bytes())
        counts = (manifest["rows_out"], manifest["failed"])
        assert counts == (wanted.count(b"\n"), stream.errors), f"wrong counts {counts}"
        errors = self._node.errors.read_bytes().splitlines() if self._node.errors.exists() else []
        found = [orjson.loads(line) for line in errors]
        kept = [(entry["message"], entry["item"]) for entry in stream.quarantined]
        assert [(row["message"], row["input"]) for row in found] == kept, "wrong error rows"
        assert all(row["input"]["n"] % BAD_EVERY == 5 for row in found)
        ours = {self._node.result, self._node.manifest, self._node.path / ".lock"}
        stray = set(self._node.path.iterdir()) - ours - ({self._node.errors} if errors else set())
        assert not stray, f"left over: {sorted(map(str, stray))}"


def main() -> int:
    """Run a campaign from the command line."""
    logging.getLogger("dagster_dataops").setLevel(logging.ERROR)  # of items that are skipped
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--keep", type=Path, help="where failed rounds leave their files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = given.keep or Path(folder)
        campaign = run_stream_campaign(
            given.kills, given.seed, place, kinds=tuple(given.kinds), items=1500
        )
    sys.stdout.write(campaign.table() + "\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
