"""Kill and suspend ranks and their workers at random instants, and check every item and state.

python tests/faults/loader_campaign.py --disturbances 200 --seed 1

Each rank is a process that reads its items with some workers, and writes each item with the state
after it. At random instants any process, rank or worker, is killed or suspended for a while. A
killed rank starts again after its last item, with another number of workers. After a while all of
them are killed, and other numbers of ranks go on from the state after the last step that all ranks
have finished.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count as counted
from pathlib import Path
from typing import Any, Final, Self
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dagster_dataops import (
    DataLoader2,
    DataPipelineBuilder,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    read_jsonl,
)
from dagster_dataops.streams.sharding import shard_pool
from tests.faults.warm_starts import warm_interpreter

MARKS: Final = ("sharding_filter", "sharding_round_robin_dispatch")
_PLACE: Final = Path(__file__).parents[2]
_RECORDS: Final = 600
_MOST: Final = 3  # ranks, and workers of each
_PATIENCE: Final = 120.0  # seconds without any progress
_PAUSE: Final = 0.15  # seconds, at most, between two disturbances

Step = tuple[int, dict[str, Any]]  # an item, and the state after it


def stream(source: Path, mark: str) -> DataPipelineBuilder:
    """Return the stream that is read."""
    read = read_jsonl(source).shuffle(100)
    marked: DataPipelineBuilder = getattr(read, mark)()
    return marked.map(slow)


def slow(record: dict[str, Any]) -> int:
    """Return the number of a record, after a while."""
    time.sleep(0.002)
    return 2 * int(record["n"])


@mock.patch.object(shard_pool, "_DEATHS_OF_ELEMENT", sys.maxsize)  # no element is at fault here
def read_rank(order: dict[str, Any]) -> None:
    """Read the items of one rank from a state, and append them to a file."""
    service = SequentialReadingService(
        DistributedReadingService(order["rank"], order["ranks"]),
        MultiProcessingReadingService(order["workers"]),
    )
    made = stream(Path(order["source"]), order["mark"])
    with DataLoader2(made, reading_service=service) as loader, Path(order["out"]).open("a") as out:
        if order["state"]:
            loader.load_state_dict(order["state"])
        for item in loader:
            out.write(json.dumps([item, loader.state_dict()]) + "\n")
            out.flush()


class Rank:
    """A process that reads the items of one rank."""

    def __init__(self, order: dict[str, Any], chance: random.Random) -> None:
        self._order, self._chance = order, chance
        self._path = Path(order["out"])
        self._path.unlink(missing_ok=True)
        self._path.touch()
        self._start()

    def _start(self) -> None:
        steps = self.steps()
        order = {**self._order, "workers": self._chance.randint(0, _MOST)}
        if steps:
            order["state"] = steps[-1][1]
        self._path.write_text("".join(json.dumps(step) + "\n" for step in steps))  # no torn line
        self.process = warm_interpreter("dagster_dataops.training.loading.loader").start(
            [__file__, "--rank", json.dumps(order)],
            sys.__stderr__.fileno(),
            folder=Path.cwd(),
            environment={**os.environ, "PYTHONPATH": str(_PLACE)},
        )

    def steps(self) -> list[Step]:
        """Return the items with their states, as far as they are complete."""
        lines = self._path.read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]

    def size(self) -> int:
        """Return the size of the file of items."""
        return self._path.stat().st_size

    def is_running(self) -> bool:
        """Return whether the process has not ended; one that was killed starts again."""
        code = self.process.poll()
        if code == -signal.SIGKILL:
            self._start()
            return True
        assert code in {None, 0}, f"a rank ended with exit code {code}"
        return code is None

    def processes(self) -> list[int]:
        """Return the process ids of the rank and its workers."""
        pid = self.process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            children = []
        return [pid, *map(int, children)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


@contextmanager
def suspended(process: int) -> Iterator[None]:
    """Suspend a process meanwhile."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def disturb(ranks: list[Rank], chance: random.Random) -> str:
    """Kill a process of a rank, or suspend it until another rank has read further."""
    rank = chance.choice(ranks)
    process = chance.choice(rank.processes())
    others = [one for one in ranks if one is not rank]
    if chance.random() < 0.5:
        os.kill(process, signal.SIGKILL)
        return "killed"
    with suspended(process):
        sizes = [one.size() for one in others]
        until = time.monotonic() + _PATIENCE
        while others and all(one.is_running() for one in others):
            if [one.size() for one in others] != sizes:
                break
            assert time.monotonic() < until, "another rank waits for one that is suspended"
            time.sleep(0.002)
        else:
            time.sleep(0.02)
    return "suspended"


def read_for_a_while(
    orders: list[dict[str, Any]], chance: random.Random, most: int, tally: dict[str, int]
) -> tuple[list[list[Step]], bool]:
    """Read with all ranks until processes were disturbed ``most`` times; with 0, until they end.

    Returns:
        The items of each rank, and whether all have ended.
    """
    with ExitStack() as stack:
        ranks = [stack.enter_context(Rank(order, chance)) for order in orders]
        until = time.monotonic() + _PATIENCE
        for number in counted():
            running = [one for one in ranks if one.is_running()]
            if not running or (0 < most <= number and all(one.steps() for one in ranks)):
                break
            assert time.monotonic() < until, "no rank ends"
            time.sleep(chance.uniform(0, _PAUSE))
            if number < most:
                with suppress(ProcessLookupError):
                    tally[disturb(running, chance)] += 1
    return [one.steps() for one in ranks], not running


def run(disturbances: int, seed: int, folder: Path) -> dict[str, int]:
    """Read streams until processes were disturbed so often; return the number of each kind."""
    source = folder / "docs.jsonl"
    source.write_text("".join(f'{{"n":{n}}}\n' for n in range(_RECORDS)))
    chance = random.Random(seed)
    tally = {"killed": 0, "suspended": 0, "epochs": 0, "numbers of ranks": 0}
    while tally["killed"] + tally["suspended"] < disturbances:
        mark = MARKS[tally["epochs"] % len(MARKS)]
        expected = [2 * record["n"] for record in read_jsonl(source).shuffle(100)]
        found = _read_epoch(source, mark, chance, tally, disturbances)
        assert found == expected, f"{mark}: other items"
        tally["epochs"] += 1
    return tally


def _read_epoch(
    source: Path, mark: str, chance: random.Random, tally: dict[str, int], disturbances: int
) -> list[int]:
    found: list[int] = []
    state: dict[str, Any] | None = None
    ended = False
    while not ended:
        number = chance.randint(1, _MOST)
        shared = {"ranks": number, "source": str(source), "mark": mark, "state": state}
        orders = [
            {**shared, "rank": rank, "out": str(source.with_name(f"rank{rank}"))}
            for rank in range(number)
        ]
        tally["numbers of ranks"] += 1
        left = max(0, disturbances - tally["killed"] - tally["suspended"])
        parts, ended = read_for_a_while(orders, chance, min(left, chance.randint(4, 12)), tally)
        steps = max(map(len, parts)) if ended else min(map(len, parts))
        for at in range(steps):
            step = [part[at] for part in parts if at < len(part)]
            found += [item for item, _ in step]
            if len(step) == number:
                assert all(one == step[0][1] for _, one in step), "the states of the ranks differ"
                state = step[0][1]
    return found


def main() -> int:
    """Run the campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disturbances", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.rank:
        read_rank(json.loads(chosen.rank))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tally = run(chosen.disturbances, chosen.seed, Path(folder))
    sys.stdout.write(f"{time.monotonic() - began:.0f} s without a difference: {tally}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
