"""Tests of the number of syncs of a small node, counted in all of its processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.filecalls import Operation, built, compiler, preloaded, read_log

_CODE = """
import sys
from pathlib import Path
from dagster_dataops import config, data, data_register
from tests.faults.filecalls import Control

@data_register("data.sync_counts")
def upper(record):
    return {"text": record["text"].upper()}

if __name__ == "__main__":
    home, mode, before = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    config.data_process_path, config.data_process_resume = str(home / "results"), False
    (home / "results").mkdir()
    operator = data.sync_counts.upper(_concurrency_mode=mode)
    for _ in range(before):
        operator(str(home / "input.jsonl"))
    control = Control()
    control.arm(home, log=home / "log", skip_syncs=True)
    assert len(operator(str(home / "input.jsonl"))) == 100
    control.disarm()
"""


@pytest.mark.slow
@pytest.mark.skipif(compiler() is None, reason="needs a C compiler on Linux")
@pytest.mark.parametrize("runs_before", [0, 1], ids=["first", "again"])
@pytest.mark.parametrize("mode", ["single", "process", "thread"])
def test_a_node_of_100_records_needs_at_most_five_syncs(
    tmp_path: Path, mode: str, runs_before: int
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "run.py").write_text(_CODE)
    lines = [json.dumps({"text": f"text {n}"}) + "\n" for n in range(100)]
    (tmp_path / "home" / "input.jsonl").write_text("".join(lines))
    (tmp_path / "home" / "log").touch()
    subprocess.run(
        [sys.executable, "run.py", str(tmp_path / "home"), mode, str(runs_before)],
        cwd=tmp_path,
        env=preloaded(built(tmp_path), tmp_path) | {"PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
    calls = [entry.operation for entry in read_log(tmp_path / "home" / "log")]
    assert Operation.RENAME in calls
    assert 2 <= sum(call in (Operation.SYNC, Operation.SYNC_DATA) for call in calls) <= 5
