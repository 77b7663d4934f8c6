"""Tests of selection operators killed in either half."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.execution.helpers import lines, node, write_input
from tests.faults.crashing import Script
from tests.subprocesses import killed_at_exit

_CODE = """
group = data_register.new_group("chosen")

class FirstOfFifty(group):
    def __init__(self, wait=0.0, **kwargs):
        super().__init__(**kwargs)
        self.wait = wait

    def sketch(self, record):
        log("sketched", record["n"])
        time.sleep(self.wait)
        if record["n"] % 10 == 3:
            raise ValueError("three")
        return record["n"] % 50

    def keep(self, sketches, scratch):
        seen = set()
        for position, sketch in enumerate(sketches):
            if position == 100:
                (scratch / "spilled").write_text("x")
                log("chose")
                if not (HOME / "undisturbed").exists():
                    time.sleep(60)
            yield sketch not in seen
            seen.add(sketch)

if __name__ == "__main__":
    report = run(FirstOfFifty(wait=0.02, _concurrency_mode=sys.argv[1], _max_workers=2))
    print(*report.notes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["process", "thread", "single"])
def test_a_kill_in_either_half_loses_nothing_and_doubles_nothing(tmp_path: Path, mode: str) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(200)])
    script = Script(tmp_path, _CODE)
    for name, entries in (("sketched", 150), ("chose", 1)):
        with killed_at_exit(script.start(mode)) as process:
            script.wait_for(name, entries)
            os.killpg(process.pid, signal.SIGKILL)
    (tmp_path / "undisturbed").touch()
    assert "resuming: 200 records settled" in script.finish(mode)
    sketched = Counter(number for _, number in script.log("sketched"))
    assert len(sketched) == 200
    # After the first kill half a second of work is done again, after the next one nothing.
    assert sum(sketched.values()) - 200 < 100
    assert max(sketched.values()) <= 2
    folder = node(tmp_path)
    expected = [{"n": n} for n in range(50) if n % 10 != 3]
    assert folder.result.read_bytes() == lines(expected)
    assert folder.errors.read_bytes().count(b"\n") == 20
    assert not folder.checkpoints.exists()
