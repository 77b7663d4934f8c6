"""Disturb every call that changes a file, in every scenario, and check the consequences.

python tests/faults/disk_campaign.py power kill error --scenarios fresh retry --cases 100

power: the power fails after any call; unsynced data is lost, zeroed or kept in any order.
kill: all processes, or one, are killed before, within or after any call.
error: any call fails for lack of space or with an I/O error, once or from then on, or stops short.

In all cases, readers find the complete old result or the complete new one. The next attempt
finishes with the bytes of an undisturbed run. No safe call is repeated.
"""

import argparse
import errno
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dagster_dataops.checkpoints.publish.commit import finish_interrupted
from dagster_dataops.errors import DataOpsError
from tests.faults.calls import calls_in
from tests.faults.filecalls import Action, Control, Entry, built, compiler, preloaded, read_log
from tests.faults.power import LOSSES, Disk, losses
from tests.faults.scenarios import SCENARIOS, Scenario, Source
from tests.nodes import CheckpointContent, Manifest, background, deleting

CAMPAIGNS: Final = ("power", "kill", "error")
_DONE, _REFUSED, _BROKEN, _HUNG = 0, 3, 9, "hung"
_LONGEST: Final = 120  # seconds that an attempt may take on a machine with much to do
_CONTENT: Final = ("result", "errors", "manifest", "published")
_WITH_WORKERS: Final = "process"

State = dict[str, Any]


@dataclass
class Tally:
    """The results of the cases of one campaign in one scenario."""

    name: str
    tried: int = 0
    calls: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        figures = f"{self.calls:6} calls {self.tried:7} tried {len(self.wrong):5} wrong"
        return f"{self.name:34}{figures} {self.seconds:7.0f} s"


class Fault(NamedTuple):
    """A way to disturb a call."""

    name: str
    action: Action
    error: int = 0
    alone: bool = False


_KILLS: Final = [
    Fault("killed before", Action.KILL_BEFORE),
    Fault("killed within", Action.KILL_HALFWAY),
    Fault("killed after", Action.KILL_AFTER),
]
_KILLS_OF_ONE: Final = [fault._replace(alone=True) for fault in _KILLS]
_ERRORS: Final = [
    Fault("no space", Action.FAIL, errno.ENOSPC),
    Fault("no space from then on", Action.FAIL_FROM_THEN_ON, errno.ENOSPC),
    Fault("I/O error", Action.FAIL, errno.EIO),
    Fault("I/O errors from then on", Action.FAIL_FROM_THEN_ON, errno.EIO),
    Fault("stopped short", Action.SHORTEN),
]


class Bench:
    """One scenario in one mode, in a separate folder."""

    def __init__(self, home: Path, name: str, mode: str, control: Control) -> None:
        self.home = home
        self.name = f"{name} {mode}"
        self._kind = SCENARIOS[name]
        self._mode = mode
        self.control = control
        self._base = home.with_name(f"{home.name}-base")
        self.disk = home / "disk"
        self._calls = home / "calls"
        self._told = home / "told"
        os.environ["CALLS"] = str(self._calls)
        home.mkdir()
        assert self.child(lambda scenario: scenario.prepare()) == _DONE, self.told()
        self.disk.rename(self._base)
        self.reset()
        self.before = self.scenario.state()
        self.paid = self.scenario.paid()
        ended = self.child(lambda scenario: scenario.disturbed())
        assert ended == (_REFUSED if self.stops else _DONE), (ended, self.told())
        if self.stops:
            assert self.child(lambda scenario: scenario.attempt("next")) == _DONE, self.told()
        self.after = self.scenario.state()

    @property
    def scenario(self) -> Scenario:
        return self._kind(self.home, self._mode)

    @property
    def stops(self) -> bool:
        return self._kind.stops

    def reset(self) -> None:
        """Restore the disk to its state before the attempt."""
        shutil.rmtree(self.disk, ignore_errors=True)
        shutil.copytree(self._base, self.disk, symlinks=True)

    def told(self) -> str:
        """Return the error that ended the last child."""
        return self._told.read_text() if self._told.exists() else ""

    def child(self, function: Callable[[Scenario], object], **armed: Any) -> int | str:
        """Call ``function`` in a separate process and return how the process ended."""
        self._calls.unlink(missing_ok=True)
        self._told.unlink(missing_ok=True)
        self.control.arm(self.disk, **{"skip_syncs": True, **armed})
        child = os.fork()
        if not child:
            self._be_child(function)
        try:
            return _ended(child)
        finally:
            self.control.disarm()

    def _be_child(self, function: Callable[[Scenario], object]) -> None:
        status = _BROKEN
        try:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the log of streams about failed items
            status = self._outcome(function)
            background.finish()
            deleting.finish()
        finally:
            os._exit(status)

    def _outcome(self, function: Callable[[Scenario], object]) -> int:
        try:
            function(self._kind(self.home, self._mode))
        except (DataOpsError, KeyboardInterrupt) as error:
            self._told.write_text(f"{type(error).__name__}: {error}")
            return _REFUSED
        except BaseException as error:  # noqa: BLE001 - which is what must not happen
            self._told.write_text(f"{type(error).__name__}: {error}")
            return _BROKEN
        return _DONE

    # ---------------------------------------------------------------- checks

    def look(self) -> Iterator[str]:
        """Yield the faults that readers find now.

        While a publication waits to be finished, the error file may already be the new one.
        """
        found = self.scenario.state()
        known = [self.before, self.after]
        if not self.scenario.is_whole(found["result"], [state["result"] for state in known]):
            yield "the result is neither the old nor the new one"
        if ".node_results.jsonl.json.draft" in found["names"]:
            known.append({**self.before, "errors": self.after["errors"]})
        if found["published"] and not any(_same(found, state) for state in known):
            yield "what passes as published is neither the old nor the new result"

    def go_on(self, paid: set[int]) -> Iterator[str]:
        """Make the next attempt, and yield the faults of its result."""
        check = self.before["published"] and not isinstance(self.scenario, Source)

        def attempt(scenario: Scenario) -> None:
            if check:
                finish_interrupted(scenario.folder)
                assert scenario.is_published(), "the published result is gone"
            scenario.attempt("next")

        ended = self.child(attempt)
        if ended != _DONE:
            yield f"the next attempt ended with {ended}: {self.told()[-300:]}"
            return
        found = self.scenario.state()
        for part in (*_CONTENT, "names"):
            if found[part] != self.after[part]:
                yield f"{part}: {str(found[part])[:200]}, not {str(self.after[part])[:200]}"
        again = paid & {number for number, _ in calls_in(self._calls)}
        if again:
            yield f"called again though paid for and safe: {sorted(again)}"

    @property
    def resumed(self) -> int:
        """Return the number of records that the last attempt did not have to settle."""
        manifest = Manifest.load(self.scenario.folder.manifest)
        return manifest.resumed if manifest else 0


def _same(found: State, known: State) -> bool:
    return all(found[part] == known[part] for part in _CONTENT)


def _ended(child: int) -> int | str:
    pidfd = os.pidfd_open(child)
    in_time = select.select([pidfd], [], [], _LONGEST)[0]
    os.close(pidfd)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # workers that outlive it
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if in_time else _HUNG


# ------------------------------------------------------------------------ the campaigns


@dataclass(frozen=True)
class Draw:
    """The selection of cases.

    Attributes:
        chance: The random generator.
        cases: The number of cases; 0 for all.
        late: The number of calls at the end to draw from; 0 for all.
    """

    chance: random.Random
    cases: int
    late: int

    def from_(self, calls: int, ways: int) -> set[tuple[int, int]]:
        """Return some of a number of calls, each with one of the ways to disturb it."""
        first = max(0, calls - self.late) if self.late else 0
        everything = [(number, way) for number in range(first, calls) for way in range(ways)]
        few = 0 < self.cases < len(everything)
        return set(self.chance.sample(everything, self.cases) if few else everything)


def _power(bench: Bench, tally: Tally, draw: Draw) -> None:
    log = bench.home / "log"
    log.write_bytes(b"")
    bench.reset()
    disk = Disk(bench.disk)
    bench.child(lambda scenario: scenario.disturbed(), log=log)
    entries = list(read_log(log))
    resumed = _resumed_undisturbed(bench) if bench.stops else 0
    tally.calls = len(entries)
    chosen = draw.from_(len(entries) + 1, LOSSES)
    paid, safe, latest = bench.paid, set[int](), set[int]()
    for number in range(len(entries) + 1):
        at_end = number == len(entries)
        entry = entries[number - 1] if number else None
        journal = disk.play(entry) if entry else None
        if journal is not None:  # all data before the last sync has had time to be safe
            safe, latest = latest, latest | _settled(bench, journal)
        for place, loss in enumerate(losses(draw.chance.randrange(1 << 30))):
            if (number, place) not in chosen and not (at_end and place == 0):
                continue
            disk.leave(bench.disk, loss)
            wrong = [*(_look_at_end(bench) if at_end and not bench.stops else bench.look())]
            wrong += bench.go_on(paid | (latest if at_end else safe))
            if at_end and bench.stops and bench.resumed != resumed:
                wrong.append(f"{bench.resumed} records resumed, not {resumed}")
            what = f"call {number} ({_words(entry)}), {loss.name}"
            _count(bench, tally, what, wrong)


def _look_at_end(bench: Bench) -> Iterator[str]:
    """Yield the faults after the attempt has returned: its published files must be safe."""
    if not _same(bench.scenario.state(), bench.after):
        yield "what was published is not there"


def _resumed_undisturbed(bench: Bench) -> int:
    bench.child(lambda scenario: scenario.attempt("next"))
    return bench.resumed


def _settled(bench: Bench, journal: bytes) -> set[int]:
    (bench.home / "journal").write_bytes(journal)
    return bench.scenario.settled(CheckpointContent.read(bench.home).table)


def _words(entry: Entry | None) -> str:
    if entry is None:
        return "none"
    return f"{entry.operation.name.lower()} {Path(entry.target or entry.path).name}"


def _disturb(bench: Bench, tally: Tally, draw: Draw, faults: list[Fault], *, reads: bool) -> None:
    bench.reset()
    bench.child(lambda scenario: scenario.disturbed(), reads=reads)
    tally.calls = bench.control.count
    for number, place in sorted(draw.from_(tally.calls, len(faults))):
        fault = faults[place]
        bench.reset()
        ended = bench.child(
            lambda scenario: scenario.disturbed(),
            at=number + 1,
            action=fault.action,
            error=fault.error,
            alone=fault.alone,
            reads=reads,
        )
        if not bench.control.fired:  # with several processes the number of calls varies
            continue
        what = f"call {number + 1} ({bench.control.what}) {fault.name}"
        wrong = list(bench.look())
        if ended in (_BROKEN, _HUNG):
            wrong.append(f"the attempt ended with {ended}: {bench.told()[-300:]}")
        if ended == _DONE and not _same(bench.scenario.state(), bench.after):
            wrong.append("the attempt came back, and what it published is not there")
        wrong += bench.go_on(bench.paid)
        _count(bench, tally, what, wrong)


def _kill(bench: Bench, tally: Tally, draw: Draw) -> None:
    alone = _KILLS_OF_ONE if bench.name.endswith(_WITH_WORKERS) else []
    _disturb(bench, tally, draw, [*_KILLS, *alone], reads=False)


def _error(bench: Bench, tally: Tally, draw: Draw) -> None:
    _disturb(bench, tally, draw, _ERRORS, reads=True)


def _count(bench: Bench, tally: Tally, what: str, wrong: list[str]) -> None:
    tally.tried += 1
    if wrong:
        tally.wrong.append(f"{bench.name}, {what}: {'; '.join(wrong)}")


_RUN: Final = {"power": _power, "kill": _kill, "error": _error}


def _tallies(given: argparse.Namespace, folder: Path) -> Iterator[Tally]:
    control = Control()
    until = time.monotonic() + given.seconds
    for campaign in CAMPAIGNS if "all" in given.campaigns else given.campaigns:
        for name in given.scenarios:
            for mode in given.modes or SCENARIOS[name].modes:
                if mode not in SCENARIOS[name].modes or time.monotonic() > until:
                    continue
                tally = Tally(f"{campaign} {name} {mode}")
                began = time.monotonic()
                chance = random.Random(f"{given.seed} {tally.name}")
                draw = Draw(chance, given.cases, given.late)
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    bench = Bench(Path(place) / "home", name, mode, control)
                    _RUN[campaign](bench, tally, draw)
                tally.seconds = time.monotonic() - began
                yield tally


def main() -> int:
    """Run the campaigns of the command line; the status is 1 after any fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("campaigns", nargs="*", choices=(*CAMPAIGNS, "all"), default="all")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--modes", nargs="+", help="all that the scenario has by default")
    parser.add_argument("--cases", type=int, default=0, help="drawn for each; all by default")
    parser.add_argument("--late", type=int, default=0, help="only of so many calls at the end")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none later")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if "FILECALLS" not in os.environ:
        if compiler() is None:
            sys.stderr.write("the calls are recorded by a library that needs cc on Linux\n")
            return 2
        with tempfile.TemporaryDirectory() as folder:
            environment = preloaded(built(Path(folder)), Path(folder))
            command = [sys.executable, *sys.argv]
            return subprocess.run(command, env=environment, check=False).returncode
    tried = wrong = 0
    for tally in _tallies(given, Path(os.environ["FILECALLS"]).parent):
        sys.stdout.write("\n  ".join([tally.line(), *tally.wrong]) + "\n")
        sys.stdout.flush()
        tried, wrong = tried + tally.tried, wrong + len(tally.wrong)
    sys.stdout.write(f"{tried} tried, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
