"""Tests of runs killed at random while their input changes: settled records are not repeated."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from dagster_dataops.checkpoints.checkpoint import existing
from dagster_dataops.checkpoints.folder.manifest import published
from dagster_dataops.checkpoints.journal.stored_outcomes import line_digest, outcomes_in
from tests.execution.helpers import lines, node
from tests.faults.crashing import HANG_SECONDS, Script, alive_in_session, wait_until
from tests.subprocesses import killed_at_exit

pytestmark = pytest.mark.slow

_KILLS = 6
_SCRIPT = """
@data_register("data.reuse_kills", _max_workers=3, _reuse_outcomes=True)
def work(record):
    time.sleep(0.005)
    log("asked", record["n"])
    return {"n": record["n"], "done": True} if record["n"] % 5 else []

@data_register("data.reuse_kills", _max_workers=3, _reuse_outcomes=True)
async def work_async(record):
    await asyncio.sleep(0.005)
    log("asked", record["n"])
    return {"n": record["n"], "done": True} if record["n"] % 5 else []

if __name__ == "__main__":
    mode, attempt = sys.argv[1:]
    operator = (work_async if mode == "async" else work)(_concurrency_mode=mode)
    run(operator, run=attempt)
"""
Rows = list[dict[str, Any]]


class _Victim:
    """One node whose input changes with every attempt."""

    def __init__(self, folder: Path, mode: str, seed: int) -> None:
        self._folder = folder
        self._mode = mode
        self._chance = random.Random(seed)
        self._script = Script(folder, _SCRIPT)
        self._next = 0
        self.rows = self._new(120)

    def _new(self, count: int) -> Rows:
        self._next += count
        return [{"n": n, "text": "x" * (n % 7)} for n in range(self._next - count, self._next)]

    def change(self) -> None:
        """Leave some records out, add some, and put all in another order."""
        kept = [row for row in self.rows if self._chance.random() < 0.95]
        self.rows = [*kept, *self._new(self._chance.randint(0, 8))]
        if self._chance.random() < 0.5:
            self._chance.shuffle(self.rows)

    def settled(self) -> set[int]:
        """Return the numbers of the records whose outcomes are on disk."""
        folder = node(self._folder)
        journals = [content.folder / "journal" for content in existing(folder.checkpoints)]
        journals += [folder.kept] if published(folder) else []
        numbers = {line_digest(orjson.dumps(row)): row["n"] for row in self.rows}
        digests = {one.digest for path in journals if path.exists() for one in outcomes_in(path)}
        return {number for digest, number in numbers.items() if digest in digests}

    def attempt(self, number: int, *, killing: bool) -> set[int]:
        """Run over the present input, for a while or to the end; return the called records."""
        (self._folder / "input.jsonl").write_bytes(lines(self.rows))
        (self._folder / "asked").unlink(missing_ok=True)
        with killed_at_exit(self._script.start(self._mode, f"attempt-{number}")) as process:
            if killing:
                asked = self._folder / "asked"
                wait_until(lambda: asked.exists() or process.poll() is not None, 30, "a call")
                time.sleep(self._chance.uniform(0, 0.5))
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            assert process.wait(HANG_SECONDS) in {0, -9}, self._script.output()
            wait_until(lambda: not alive_in_session(process.pid), 10, "its end")
        return {int(text) for _, text in self._script.log("asked")}


@pytest.mark.parametrize("mode", ["single", "thread", "async", "process"])
def test_records_settled_before_a_kill_are_not_called_again_after_an_input_change(
    tmp_path: Path, mode: str
) -> None:
    victim = _Victim(tmp_path, mode, seed=7)
    saved = 0
    for number in range(_KILLS + 1):
        settled = victim.settled()
        asked = victim.attempt(number, killing=number < _KILLS)
        assert not asked & settled, f"attempt {number} asked again for {sorted(asked & settled)}"
        saved += len(settled)
        if number < _KILLS:
            victim.change()
    assert saved
    wanted = [{"n": row["n"], "done": True} for row in victim.rows if row["n"] % 5]
    assert node(tmp_path).result.read_bytes() == lines(wanted)
