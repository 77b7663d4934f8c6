"""Tests of the memory of a run whose first record ends after all others."""

from pathlib import Path

import psutil
import pytest

from tests.execution.helpers import node, write_input
from tests.faults.crashing import Script
from tests.subprocesses import killed_at_exit

_CODE = """
@data_register("data.memory", _concurrency_mode="process", _max_workers=4)
def first_waits(record):
    last = HOME / "last"
    if record["n"] == 0:
        while not last.exists():
            time.sleep(0.05)
    elif record["n"] == int(sys.argv[1]):
        last.touch()

if __name__ == "__main__":
    run(data.memory.first_waits())
"""


def _peak(folder: Path, records: int) -> int:
    """Return the largest sum of private memory of all processes of a run, in bytes."""
    folder.mkdir()
    text = "x" * 200
    write_input(folder / "input.jsonl", ({"n": n, "text": text} for n in range(records)))
    script, peak = Script(folder, _CODE), 0
    with killed_at_exit(script.start(f"{records - 1}")) as process:
        leader = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                family = [leader, *leader.children(recursive=True)]
                peak = max(peak, sum(member.memory_full_info().uss for member in family))
            except psutil.Error:
                continue
            psutil.wait_procs([leader], timeout=0.05)
    assert process.returncode == 0, script.output()
    result = node(folder).result
    assert result.read_bytes() == (folder / "input.jsonl").read_bytes()
    return peak


@pytest.mark.slow
def test_outputs_of_later_records_are_not_kept_in_memory(tmp_path: Path) -> None:
    few, many = _peak(tmp_path / "few", 150_000), _peak(tmp_path / "many", 600_000)
    more = (tmp_path / "many" / "input.jsonl").stat().st_size * 3 // 4
    assert many - few < more // 2
