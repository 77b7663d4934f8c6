"""Round: attempts at one input, killed one after another, with checks of the remaining files."""

import os
import random
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from tests.faults.calls import calls_in
from tests.faults.crashing import HANG_SECONDS, alive_in_session, children_of, wait_until
from tests.faults.tally import Campaign
from tests.faults.warm_starts import StartedProcess, warm_interpreter
from tests.nodes import NodeFolder, draft_of

_ROOT: Final = Path(__file__).parents[2]
_MOST_IN_A_ROW: Final = 5


class Kill(NamedTuple):
    """A kill: the victim, the moment in the run (``at random`` or a step), and the time."""

    victim: str
    moment: str
    time: float


def play_rounds(
    campaign: Campaign,
    kills: int,
    chance: random.Random,
    kinds: Sequence[str],
    round_of: "Callable[[str, str], Round]",
) -> Campaign:
    """Play rounds until ``kills`` have been killed; return the campaign."""
    number = 0
    while (left := kills - sum(campaign.kills.values())) > 0:
        kind = kinds[number % len(kinds)]
        round_of(f"{number:04d}-{kind}", kind).play(min(left, chance.randint(1, _MOST_IN_A_ROW)))
        number += 1
    return campaign


class Round(ABC):
    """One input of one kind, killed a few times, then finished and checked."""

    victim: ClassVar[str]  # module whose `main` is an attempt
    modules: ClassVar[tuple[str, ...]] = ()  # that it imports besides the engine
    ending_seconds: ClassVar[float]  # the longest that other processes may outlive their parent
    begun: ClassVar[float]  # share of the kills at random that come after the first call
    victims: tuple[str, ...]  # seconds before kills at random
    longest_wait: float  # seconds before one
    arguments: list[str]  # arguments of the victim, between its folder and its attempts

    def __init__(self, home: Path, kind: str, chance: random.Random, campaign: Campaign) -> None:
        self.home = home
        self.kind = kind
        self.chance = chance
        self.campaign = campaign
        self.node = NodeFolder(home / "node", "node")
        self.attempts = 0
        home.mkdir(parents=True)

    @abstractmethod
    def order(self) -> str:
        """Return the value of MOMENT; empty for a kill after a random time."""

    @abstractmethod
    def check_attempt(self, kills: list[Kill], status: int, *, committed: bool) -> None:
        """Check the calls and the files of an attempt that started with a ``committed`` result."""

    @abstractmethod
    def check_result(self) -> None:
        """Check the final published result."""

    def environment(self) -> Mapping[str, str]:
        """Return variables of the environment of the next attempt, beside those of each."""
        return {}

    def play(self, kills: int) -> None:
        try:
            for _ in range(kills):
                if not self._attempt(killing=True):
                    break
            else:
                self._attempt(killing=False)
            self.check_result()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            what = f"{self.home.name} {self.arguments}, attempt {self.attempts}: {error}"
            self.campaign.failures.append(what[:900])
            return
        shutil.rmtree(self.home)

    def output(self) -> str:
        """Return all that its attempts have printed."""
        return (self.home / "output.txt").read_text()

    def calls(self) -> list[tuple[int, float]]:
        """Return the calls of this attempt: record and time of its end."""
        return calls_in(self._calls_path)

    def drawn(
        self, moments: Mapping[str, tuple[str, str, str, int]], victims: tuple[str, ...]
    ) -> str:
        """Return an order to kill at one of some moments."""
        name = self.chance.choice(list(moments))
        call = int(moments[name][3] ** self.chance.random() + 0.5)
        side = self.chance.choice(("before", "after"))
        return f"{name}:{call}:{side}:{self.chance.choice(victims)}:{self.home}"

    # ------------------------------------------------------------ one attempt

    def _attempt(self, *, killing: bool) -> bool:
        """Start an attempt and kill part of it; return whether the next one must resume."""
        self.attempts += 1
        committed = draft_of(self.node.manifest).exists()
        moment = self.order() if killing else ""
        process = self._start(moment)
        try:
            kills = list(self._kill(process, moment)) if killing else []
            status = process.wait(HANG_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        assert status in (0, -9), f"status {status}: {self.output()[-900:]}"
        ended = lambda: not alive_in_session(process.pid)  # noqa: E731
        wait_until(ended, self.ending_seconds, "the end of all its processes")
        for kill in kills:
            self.campaign.kills[self.kind, kill.victim, kill.moment] += 1
        self.check_attempt(kills, status, committed=committed)
        return status != 0

    def _start(self, moment: str) -> StartedProcess:
        (self.home / "struck").unlink(missing_ok=True)
        added = {"CALLS": str(self._calls_path), "PYTHONPATH": str(_ROOT)}
        if moment:
            added["MOMENT"] = moment
        runs = [f"attempt-{number}" for number in range(self.attempts, 0, -1)]
        with (self.home / "output.txt").open("ab") as output:
            return warm_interpreter(*self.modules).start(
                ["-m", self.victim, str(self.home), *self.arguments, *runs],
                output.fileno(),
                folder=_ROOT,
                environment=os.environ | added | dict(self.environment()),
            )

    @property
    def _calls_path(self) -> Path:
        return self.home / f"calls-{self.attempts}"

    # ------------------------------------------------------------ kills

    def _kill(self, process: StartedProcess, moment: str) -> Iterator[Kill]:
        if moment:
            process.wait(HANG_SECONDS)
            struck = self.home / "struck"
            if struck.exists():
                name, _, _, victim, _ = moment.split(":", 4)
                if victim == "worker" and process.returncode:
                    victim = "parent"  # it was the parent that came by
                yield Kill(victim, name, float(struck.read_text() or time.monotonic()))
            return
        victim = self.chance.choice(self.victims)
        if self.chance.random() < self.begun:  # else before the first record, or anywhere
            begun = lambda: self._calls_path.exists() or process.poll() is not None  # noqa: E731
            wait_until(begun, 60, "the first call")
        for _ in range(self.chance.randint(1, 2) if victim == "worker" else 1):
            time.sleep(self.chance.uniform(0, self.longest_wait))
            now = time.monotonic()
            if process.poll() is None and self._strike(process.pid, victim):
                yield Kill(victim, "at random", now)

    def _strike(self, pid: int, victim: str) -> bool:
        workers = children_of(pid) if victim == "worker" else []
        try:
            if victim == "group":
                os.killpg(pid, signal.SIGKILL)
            elif victim == "parent" or workers:
                os.kill(self.chance.choice(workers or [pid]), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return victim != "worker" or bool(workers)
