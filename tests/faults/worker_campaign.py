"""Kill and suspend worker processes of streams at random instants, and check every item and state.

python tests/faults/worker_campaign.py --kills 200 --seed 1

Each round reads one kind of stream with a random number of workers. A timer kills or suspends a
random worker again and again. At a random item the reading ends, and a new stream resumes from its
state with another number of workers.
"""

import argparse
import json
import logging
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dagster_dataops import DataPipelineBuilder, read_jsonl, read_sequence
from dagster_dataops.streams.sharding import shard_pool
from dagster_dataops.testing import PositionedStream
from tests.streams.sharding.killing import disturb, workers

_RECORDS: Final = 400
_PAUSES: Final = (0.02, 0.25)  # seconds between two disturbances
_MOST_WORKERS: Final = 4


def slow(record: dict[str, Any], random: random.Random) -> dict[str, Any]:
    """Return a record with a random number; some records fail."""
    time.sleep(0.0005)
    if record["n"] % 17 == 5:
        raise ValueError(record["n"])
    return {**record, "drawn": random.random()}


def repeated(record: dict[str, Any]) -> DataPipelineBuilder:
    """Return a stream of none to two copies of a record."""
    return read_sequence([record] * (record["n"] % 3))


def streams(path: Path) -> dict[str, Callable[[], DataPipelineBuilder]]:
    """Return the kinds of streams by name."""
    read = read_jsonl(path, block_size=1024)
    return {
        "filtered": lambda: read.shuffle(0).sharding_filter().map(slow, random=True),
        "windows": lambda: read.shuffle(64).sharding_filter().map(slow, random=True).bucket(3),
        "dispatched": lambda: read.sharding_round_robin_dispatch().map(slow, random=True),
        "expanded": lambda: read.yield_from(repeated).map(slow, random=True),
    }


class Timer:
    """Disturbs a random worker at random instants."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.count = 0

    def start(self) -> None:
        """Begin."""
        signal.signal(signal.SIGALRM, self._ring)
        self._wait()

    def _wait(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._chance.uniform(*_PAUSES))

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        alive = workers()
        if alive:
            disturb(self._chance.choice(alive), suspended=self._chance.random() < 0.3)
            self.count += 1
        self._wait()

    def stop(self) -> None:
        """End."""
        signal.setitimer(signal.ITIMER_REAL, 0)


@mock.patch.object(shard_pool, "_DEATHS_OF_ELEMENT", sys.maxsize)  # no element is at fault here
@mock.patch.object(shard_pool, "_KILLED_STARTS", sys.maxsize)  # a busy machine starts slowly
def run(kills: int, seed: int, folder: Path) -> dict[str, int]:
    """Read streams until workers were disturbed ``kills`` times; return the rounds of each kind."""
    path = folder / "source.jsonl"
    lines = [json.dumps({"n": n}) if n % 29 else "{torn" for n in range(_RECORDS)]
    path.write_text("\n".join(lines))
    chance = random.Random(seed)
    timer, kinds = Timer(chance), streams(path)
    expected = {name: _read(_opened(make(), 0), None) for name, make in kinds.items()}
    rounds = dict.fromkeys(kinds, 0)
    while timer.count < kills:
        name = chance.choice(list(kinds))
        wanted, end = expected[name]
        timer.start()
        try:
            first = _opened(kinds[name](), chance.randint(1, _MOST_WORKERS))
            stop = chance.randint(0, len(wanted))
            head, state = _read(first, stop)
            second = _opened(kinds[name](), chance.randint(1, _MOST_WORKERS))
            second.load_state_dict(json.loads(state))
            rest, last = _read(second, None)
        finally:
            timer.stop()
        assert head + rest == wanted, f"{name}: other items or states after {stop} items"
        assert last == end, f"{name}: another state at the end"
        rounds[name] += 1
    return rounds


def _opened(stream: DataPipelineBuilder, count: int) -> PositionedStream:
    return stream.workers(count).and_return(on_error="skip", seed=3)


def _read(stream: PositionedStream, count: int | None) -> tuple[list[tuple[str, str]], str]:
    found = [
        (json.dumps(item), json.dumps(stream.state_dict()["position"]))
        for item in islice(stream, count)
    ]
    return found, json.dumps(stream.state_dict())


def main() -> int:
    """Run the campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    logging.getLogger("dagster_dataops").setLevel(logging.ERROR)  # warnings about skipped items
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rounds = run(chosen.kills, chosen.seed, Path(folder))
    seconds = time.monotonic() - began
    text = f"{chosen.kills} disturbances, {seconds:.0f} s, rounds without a difference: {rounds}"
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
