"""Kill: a script that is killed again and again, and what must hold of its files."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.execution.helpers import MODES, lines, node
from tests.faults.crashing import HANG_SECONDS, Script, alive_in_session, wait_until
from tests.nodes import NodeFolder
from tests.subprocesses import killed_at_exit

_KEPT: Final = {"script.py", "input.jsonl", "output.txt"}


class Kill:
    """A case of the table: a script, its options, what it must publish and what else must hold.

    `play` is the loop over all cases: start the script, wait until it works, kill it at a random
    instant or at the next of `moments`, check, and go on. A run that has ended is checked, and the
    next one begins anew.

    Attributes:
        code: The script after the prelude of `Script`; its first argument is the option.
        options: The options; each is a test.
        kills: The number of kills of one option.
        wait: Seconds between a new line of the log and a kill: the least and the most.
        log: The log to which the script writes a line when it works.
        calls: The log of the calls: each line begins with the number of the record.
        moments: Logs with the numbers of their lines at which to kill, in place of random instants.
        group: Whether all processes are killed at once, and not the first one only.
        modules: Large modules that the script needs besides the engine.
        failed: The number of error rows.
    """

    code: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = MODES
    kills: ClassVar[int]
    wait: ClassVar[tuple[float, float]]
    log: ClassVar[str] = "called"
    calls: ClassVar[str] = "called"
    moments: ClassVar[tuple[tuple[str, int], ...]] = ()
    group: ClassVar[bool] = True
    modules: ClassVar[tuple[str, ...]] = ()
    failed: int = 0

    def __init__(self, folder: Path, option: str) -> None:
        self.folder, self.option = folder, option
        self.chance = random.Random(f"{type(self).__name__} {option} {self.kills}")
        self.script = Script(folder, self.code, *self.modules)
        self.node = self.node_folder()
        self.attempts = 0
        self.rows = self.records()
        (folder / "input.jsonl").write_bytes(lines(self.rows))

    # ------------------------------------------------------------ what a case states

    def node_folder(self) -> NodeFolder:
        """Return the folder of the node that is checked."""
        return node(self.folder)

    def records(self) -> list[dict[str, Any]]:
        """Return the input."""
        return []

    def arguments(self, *, last: bool) -> list[str]:
        """Return the arguments of the next attempt; the last one is not killed."""
        return [self.option]

    def prepare(self) -> None:
        """Change what the next attempt finds."""

    def expected(self) -> object:
        """Return what must be published."""
        raise NotImplementedError

    def published(self) -> object:
        """Return what is published, in the form of `expected`."""
        return self.node.result.read_bytes()

    def check_attempt(self) -> None:
        """Check the files after each attempt, killed or not."""

    def check(self) -> None:
        """Check a published result."""
        assert self.published() == self.expected()
        assert {int(number) for number in self.called()} == {row["n"] for row in self.rows}
        errors = self.node.errors.read_bytes() if self.node.errors.exists() else b""
        assert errors.count(b"\n") == self.failed

    def check_end(self) -> None:
        """Check what a run that was not killed has left."""
        assert not self.node.checkpoints.exists()

    # ------------------------------------------------------------ the loop

    def play(self) -> None:
        """Kill the script as often as stated, then let it end, with all checks."""
        killed = 0
        while killed < (len(self.moments) or self.kills):
            was_killed = self._attempt(*self.moments[killed : killed + 1])
            killed += was_killed
            if not was_killed:
                self.check()
                self.check_end()
                self.begin_anew()
            elif self.is_published():  # between its publication and its end
                self.check()
                self.end()
                self.begin_anew()
        self.end()

    def is_published(self) -> bool:
        """Return whether there is a result to check, although the run may have been killed."""
        return self.node.manifest.exists()

    def end(self) -> None:
        """Run to the end, and check."""
        self.prepare()
        self.script.finish(*self.arguments(last=True))
        self.check_attempt()
        self.check()
        self.check_end()

    def begin_anew(self) -> None:
        """Remove results and logs, so that the next attempt is the first of a run."""
        for path in self.folder.iterdir():
            if path.name not in _KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def called(self) -> Counter[str]:
        """Return how often each record was called."""
        return Counter(entry[1] for entry in self.script.log(self.calls))

    def is_due(self, moment: tuple[str, int]) -> bool:
        """Return whether the log of ``moment`` has as many lines."""
        log, entries = moment
        return len(self.script.log(log)) >= entries

    def _attempt(self, *moments: tuple[str, int]) -> bool:
        """Run for a while; return whether the run was killed."""
        self.attempts += 1
        self.prepare()
        moment = moments[0] if moments else (self.log, len(self.script.log(self.log)) + 1)
        with killed_at_exit(self.script.start(*self.arguments(last=False))) as process:
            due = lambda: process.poll() is not None or self.is_due(moment)  # noqa: E731
            wait_until(due, HANG_SECONDS, f"{moment[1]} lines in {moment[0]}")
            time.sleep(0 if moments else self.chance.uniform(*self.wait))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL) if self.group else process.kill()
            status = process.wait(HANG_SECONDS)
            assert status in {0, -9}, self.script.output()
            wait_until(lambda: not alive_in_session(process.pid), 10, "the end of its processes")
        assert status or not moments, f"the run ended before {moment}"
        self.check_attempt()
        return status != 0


class Publishing(Kill):
    """A script that publishes the numbers from its second argument on until it is killed.

    It writes each number to its log after it has published it. What is found after a kill is the
    latest number in the log, or the one after.
    """

    log = calls = "published"

    def __init__(self, folder: Path, option: str) -> None:
        super().__init__(folder, option)
        self.latest = -1

    def arguments(self, *, last: bool) -> list[str]:
        return [self.option, str(self.latest + 1)]

    def published(self) -> object:
        """Return the number that is published, after a check that all of it is there."""
        raise NotImplementedError

    def check_attempt(self) -> None:
        found, reported = self.published(), self.reported()
        assert found in {reported, reported + 1}  # killed between publishing and reporting
        assert isinstance(found, int)
        self.latest = found

    def reported(self) -> int:
        return max(int(number) for number in self.called())

    def is_published(self) -> bool:
        return False  # `check_attempt` has checked it

    def end(self) -> None:
        self.check_end()
