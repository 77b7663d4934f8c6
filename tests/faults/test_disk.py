"""Tests of full disks: a clear error, no lost record, and the next attempt resumes."""

import json
from pathlib import Path

import pytest

from tests.execution.helpers import lines, write_input
from tests.faults.crashing import Script

_CODE = """
import resource
from dagster_dataops.errors import StorageError

@data_register("data.disk", _max_workers=2)
def blow_up(record):
    log("calls.log", record["n"])
    time.sleep(0.001)
    return {"n": record["n"], "text": "x" * 2000}

@data_register("data.disk", _max_workers=2)
async def blow_up_async(record):
    log("calls.log", record["n"])
    await asyncio.sleep(0.001)
    return {"n": record["n"], "text": "x" * 2000}

@data_register("data.disk", rewrite_func="forward_batch_input")
def blow_up_all(records):
    return [{**record, "text": "x" * 2000} for record in records]

mode, limit = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
if mode == "dataset":
    operator = data.disk.blow_up_all()
elif mode == "async":
    operator = data.disk.blow_up_async()
else:
    operator = data.disk.blow_up(_concurrency_mode=mode)
from dagster_dataops.execution.records import span_loop
span_loop.SPAN_SECONDS = 0.0
try:
    report = run(operator)
except StorageError as error:
    print("refused:", error, flush=True)
else:
    print("resumed", report.manifest.resumed, flush=True)
"""
_RECORDS = [{"n": n} for n in range(300)]
_EXPECTED = lines({"n": n, "text": "x" * 2000} for n in range(300))


@pytest.fixture
def script(tmp_path: Path) -> Script:
    write_input(tmp_path / "input.jsonl", _RECORDS)
    return Script(tmp_path, _CODE)


def _result(script: Script) -> bytes:
    return (script.folder / "node" / "node_results.jsonl").read_bytes()


@pytest.mark.parametrize("mode", ["single", "thread", "async", "process"])
def test_a_full_disk_is_a_storage_error_and_settled_work_stays(script: Script, mode: str) -> None:
    # Room for half of the output in one segment; two processes share it between their segments.
    output = script.finish(mode, "150000" if mode == "process" else "300000")
    assert output.startswith("refused:"), output
    assert "File too large" in output
    assert "records that a run has finished are kept" in output
    assert not (script.folder / "node" / "node_results.jsonl").exists()
    output = script.finish(mode, "0")
    resumed = int(output.split("resumed ")[1])
    assert resumed >= 60
    assert _result(script) == _EXPECTED


@pytest.mark.parametrize("mode", ["single", "process", "dataset"])
def test_a_disk_too_full_to_publish_keeps_the_previous_result(script: Script, mode: str) -> None:
    script.finish(mode, "0")
    previous = _result(script)
    write_input(script.folder / "input.jsonl", [*_RECORDS, {"n": 300}])
    calls = len(script.log("calls.log"))
    # Each of the segments fits, the whole result does not.
    limit = {"single": "606000", "process": "500000", "dataset": "300000"}[mode]
    output = script.finish(mode, limit)
    assert "refused:" in output, output
    assert _result(script) == previous
    manifest = json.loads((script.folder / "node" / "node_results.jsonl.json").read_text())
    assert manifest["rows_out"] == 300
    script.finish(mode, "0")
    assert _result(script).count(b"\n") == 301
    if mode == "process":
        assert len(script.log("calls.log")) <= calls + 301
