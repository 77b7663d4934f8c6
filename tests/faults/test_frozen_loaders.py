"""Tests that ranks and their workers, suspended (SIGSTOP) and continued, change nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

import pytest

from dagster_dataops import read_jsonl

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]

_RECORDS = 3_000
_LEAST = 20  # suspensions
_PATIENCE = 120.0  # seconds without any progress
RANK = textwrap.dedent(
    """
    import json, sys, time
    from dagster_dataops import (
        DataLoader2, DistributedReadingService, MultiProcessingReadingService,
        SequentialReadingService, read_jsonl,
    )

    def doubled(record):
        time.sleep(0.002)
        return 2 * record["n"]

    rank, mark, source, out = int(sys.argv[1]), *sys.argv[2:]
    stream = getattr(read_jsonl(source).shuffle(100), mark)().map(doubled)
    service = SequentialReadingService(
        DistributedReadingService(rank, 2), MultiProcessingReadingService(2)
    )
    with DataLoader2(stream, reading_service=service) as loader, open(out, "w") as file:
        for item in loader:
            file.write(f"{item}\\n")
            file.flush()
        file.write(json.dumps(loader.state_dict()) + "\\n")
    """
)


class Rank:
    """A process that reads the items of one rank, with two workers, and writes them to a file."""

    def __init__(self, number: int, mark: str, source: Path) -> None:
        self.out = source.with_name(f"rank{number}")
        self.out.touch()
        command = [sys.executable, "-c", RANK, str(number), mark, str(source), str(self.out)]
        self.process = subprocess.Popen(command)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def processes(self) -> list[int]:
        """Return the process ids of the rank and its workers."""
        pid = self.process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            children = []
        return [pid, *map(int, children)]

    def is_running(self) -> bool:
        return self.process.poll() is None

    def lines(self) -> list[str]:
        return self.out.read_text().splitlines()


def suspend_until_another_goes_on(chosen: int, other: Rank) -> bool:
    """Suspend a process until a rank that is not suspended has read further, or has ended."""
    size, until = other.out.stat().st_size, time.monotonic() + _PATIENCE
    try:
        os.kill(chosen, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    try:
        while other.is_running() and other.out.stat().st_size == size:
            assert time.monotonic() < until, "the other rank waits for one that is suspended"
            time.sleep(0.005)
    finally:
        with suppress(ProcessLookupError):
            os.kill(chosen, signal.SIGCONT)
    return True


@pytest.mark.parametrize("mark", ["sharding_filter", "sharding_round_robin_dispatch"])
def test_ranks_and_workers_that_are_suspended_for_a_while_lose_and_move_nothing(
    tmp_path: Path, mark: str
) -> None:
    source = tmp_path / "docs.jsonl"
    source.write_text("".join(f'{{"n":{n}}}\n' for n in range(_RECORDS)))
    choices, count = random.Random(3), 0
    with ExitStack() as stack:
        ranks = [stack.enter_context(Rank(number, mark, source)) for number in range(2)]
        while all(one.is_running() for one in ranks):
            at = choices.randrange(2)
            chosen = choices.choice(ranks[at].processes())
            count += suspend_until_another_goes_on(chosen, ranks[1 - at])
        assert [one.process.wait(_PATIENCE) for one in ranks] == [0, 0]
        (*first, of_first), (*second, of_second) = (one.lines() for one in ranks)
    assert count >= _LEAST
    alone = read_jsonl(source).shuffle(100).map(lambda record: 2 * record["n"])
    assert [int(n) for pair in zip(first, second, strict=True) for n in pair] == list(alone)
    assert json.loads(of_first) == json.loads(of_second)
