"""Runs with results in parts, killed at random instants in every mode."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from dagster_dataops.byte_ranges import PartedFile
from dagster_dataops.checkpoints.folder.manifest import NodeFolder, published
from tests.execution.helpers import lines, node, write_input
from tests.faults.cases import cases
from tests.faults.crashing import Script, wait_until
from tests.subprocesses import killed_at_exit

_CODE = """
def _made(record):
    number = record["n"]
    if number % 10 == 3:
        raise ValueError("three")
    return [record] * (number % 3)

@data_register("data.killed")
def several(record):
    log("called", record["n"])
    time.sleep(0.01)
    return _made(record)

@data_register("data.killed")
async def several_async(record):
    log("called", record["n"])
    await asyncio.sleep(0.01)
    return _made(record)

if __name__ == "__main__":
    operator = several_async if sys.argv[1] == "async" else several
    print(*run(operator(_concurrency_mode=sys.argv[1], _max_workers=4, _part_records=7)).notes)
"""
_RECORDS = 300
_KILLS = cases(12, campaign=60)  # of results that are replaced or split again


def _expected() -> bytes:
    """Return the single file."""
    return lines({"n": n} for n in range(_RECORDS) if n % 10 != 3 for _ in range(n % 3))


def _joined(folder: NodeFolder, part: int) -> bytes:
    """Return the parts joined; all but the last have ``part`` lines."""
    parts = [path.read_bytes() for path in PartedFile.at(folder.result).paths]
    assert {text.count(b"\n") for text in parts[:-1]} <= {part}
    return b"".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["process", "thread", "async", "single"])
def test_the_parts_joined_are_the_single_file_after_kills(tmp_path: Path, mode: str) -> None:
    write_input(tmp_path / "input.jsonl", [{"n": n} for n in range(_RECORDS)])
    script, folder = Script(tmp_path, _CODE), node(tmp_path)
    chance = random.Random(mode)
    for _ in range(4):
        before = len(script.log("called"))
        with killed_at_exit(script.start(mode)) as process:
            if before < _RECORDS:
                script.wait_for("called", before + 1)
            time.sleep(chance.uniform(0, 0.4))
            os.killpg(process.pid, signal.SIGKILL)
    script.finish(mode)
    assert _joined(folder, 7) == _expected()
    called = Counter(number for _, number in script.log("called"))
    assert len(called) == _RECORDS
    assert folder.errors.read_bytes().count(b"\n") == _RECORDS // 10
    assert not folder.checkpoints.exists()


_SPLITTING = """
@data_register("data.killed", _concurrency_mode="single")
def kept(record):
    return record

if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        # A new input every third time, else another size of the parts.
        (HOME / "input.jsonl").write_text('{"n": %d}\\n' % (number // 3) * 500)
        part = (50, 0, 7)[number % 3]
        run(kept(_part_records=part), run=f"r-{number}", reuse_finished=True)
        log("published", number)
"""


@pytest.mark.slow
def test_a_result_is_whole_when_it_is_replaced_or_split_again_and_killed(
    tmp_path: Path,
) -> None:
    script, folder = Script(tmp_path, _SPLITTING), node(tmp_path)
    chance, latest, whole = random.Random(_KILLS), -1, 0
    for _ in range(_KILLS):
        before = len(script.log("published"))
        with killed_at_exit(script.start(str(latest + 1), "1000000")):
            wait_until(lambda n=before: len(script.log("published")) > n, 60, "a result")
            time.sleep(chance.random() * 0.1)
        latest = max(int(number) for _, number in script.log("published"))
        found = published(folder)
        if found is not None:  # else it was killed between two renames; the next run goes on
            whole += 1
            (number,) = {record["n"] for record in found[0]}
            assert found[0].rows == 500
            assert number in {latest // 3, (latest + 1) // 3}
    assert whole > _KILLS // 3
    last = latest + 3 - latest % 3  # in parts of 50
    script.finish(str(latest + 1), str(last + 1))
    assert _joined(folder, 50) == b'{"n":%d}\n' % (last // 3) * 500
    version = folder.result.resolve().name
    kept = {path.name.removesuffix(".jsonl") for path in folder.parts.iterdir()}
    assert version in kept
    assert len(kept) <= 2  # and the version before, for readers that have begun
