"""Training on a stream with several ranks and workers, killed and continued with other numbers.

A linear model is trained by gradient descent. Each step takes the same 24 records, whatever the
number of ranks and of their workers; so the weights are the same, too, to the last bit.

>>> python examples/elastic_training.py FOLDER [--ranks 2] [--workers 1] [--die-at STEP]
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dagster_dataops import (
    DataLoader2,
    DistributedReadingService,
    MultiProcessingReadingService,
    SequentialReadingService,
    merged_states,
    read_jsonl,
)

RECORDS, EPOCHS = 240, 3
GLOBAL_BATCH = 24  # records of a step: a multiple of each number of ranks
RATE = 0.2
TRUE_WEIGHTS = [2.0, -1.0, 0.5]


def write_data(path: Path) -> None:
    """Write records with features x and a value y, which depends on them linearly."""
    generator = random.Random(1)  # noqa: S311 - not used for secrets
    lines = []
    for number in range(RECORDS):
        x = [generator.uniform(-1, 1) for _ in range(2)]
        y = sum(weight * one for weight, one in zip(TRUE_WEIGHTS, [*x, 1.0], strict=True))
        lines.append(json.dumps({"n": number, "x": x, "y": y}) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def with_noise(record: dict[str, Any], generator: random.Random) -> dict[str, Any]:
    """Return a record with noise in its value: the same noise on each rank and in each worker."""
    return {**record, "x": [*record["x"], 1.0], "y": record["y"] + generator.gauss(0, 0.01)}


def loader_of(folder: Path, rank: int, ranks: int, workers: int) -> DataLoader2:
    """Return the loader of one rank."""
    stream = read_jsonl(folder / "data.jsonl").shuffle(0).sharding_filter()
    service = SequentialReadingService(
        DistributedReadingService(rank, ranks, ending="drop"),
        MultiProcessingReadingService(workers),
    )
    return DataLoader2(stream.map(with_noise, random=True), reading_service=service)


def batches(loader: DataLoader2, size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the records of each step, epoch after epoch."""
    while True:
        records = iter(loader)
        while batch := list(islice(records, size)):
            yield batch


def gradient(weights: list[float], record: dict[str, Any]) -> list[float]:
    """Return the gradient of the squared error of one record."""
    error = sum(w * x for w, x in zip(weights, record["x"], strict=True)) - record["y"]
    return [error * x for x in record["x"]]


def run_rank(loader: DataLoader2, size: int, state: Any, pipe: Connection) -> None:
    """Compute gradients for the weights that the main process sends, until it ends."""
    with loader:
        if state is not None:
            loader.load_state_dict(state)
        for batch in batches(loader, size):
            try:
                weights = pipe.recv()
            except EOFError:
                return
            found = [gradient(weights, record) for record in batch]
            pipe.send((found, [record["n"] for record in batch], loader.state_dict()))


class Ranks:
    """The processes of all ranks.

    Args:
        folder: The folder of the data.
        ranks: The number of ranks.
        workers: The number of workers of each rank.
        state: The state at which to go on; ``None`` for the start.
    """

    def __init__(self, folder: Path, ranks: int, workers: int, state: Any) -> None:
        self._pipes = []
        self._processes = []
        for rank in range(ranks):
            own, other = multiprocessing.Pipe()
            loader = (folder, rank, ranks, workers)
            arguments = (loader, GLOBAL_BATCH // ranks, state, other, [*self._pipes, own])
            process = multiprocessing.get_context("fork").Process(target=_rank, args=arguments)
            process.start()
            other.close()
            self._pipes.append(own)
            self._processes.append(process)

    def step(self, weights: list[float]) -> tuple[list[float], list[int], Any]:
        """Return the mean gradient, the numbers of the records, and the state of all ranks."""
        for pipe in self._pipes:
            pipe.send(weights)
        answers = [pipe.recv() for pipe in self._pipes]
        gradients = [one for found, _, _ in answers for one in found]
        mean = [math.fsum(column) / GLOBAL_BATCH for column in zip(*gradients, strict=True)]
        numbers = sorted(number for _, found, _ in answers for number in found)
        return mean, numbers, merged_states([state for _, _, state in answers])

    def stop(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join()


def _rank(loader: Any, size: int, state: Any, pipe: Connection, inherited: list[Any]) -> None:
    for one in inherited:
        one.close()  # so that the end of the main process is noticed
    run_rank(loader_of(*loader), size, state, pipe)


def train(folder: Path, ranks: int, workers: int, die_at: int | None = None) -> list[float]:
    """Train, and save the weights and the position after every step.

    Args:
        folder: The folder of the data, of the state and of the notes.
        ranks: The number of ranks.
        workers: The number of workers of each rank.
        die_at: A step at which all processes are killed: even steps before the position is saved,
            odd steps after that.
    """
    saved, notes = folder / "state.json", folder / "trained.jsonl"
    state: dict[str, Any] = {"step": 0, "noted": 0, "weights": [0.0] * 3, "loader": None}
    if saved.exists():
        state = json.loads(saved.read_text(encoding="utf-8"))
        os.truncate(notes, state["noted"])
    weights = state["weights"]
    together = Ranks(folder, ranks, workers, state["loader"])
    with notes.open("a", encoding="utf-8") as file:
        for step in range(state["step"] + 1, EPOCHS * (RECORDS // GLOBAL_BATCH) + 1):
            mean, numbers, position = together.step(weights)
            weights = [one - RATE * slope for one, slope in zip(weights, mean, strict=True)]
            file.write(json.dumps(numbers) + "\n")
            file.flush()
            if step == die_at and step % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            state = {"step": step, "noted": file.tell(), "weights": weights, "loader": position}
            draft = folder / "state.draft"
            draft.write_text(json.dumps(state), encoding="utf-8")
            draft.replace(saved)
            if step == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
    together.stop()
    return weights


def main() -> None:
    """Write the data if it is missing, and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--die-at", type=int, metavar="STEP")
    given = parser.parse_args()
    if not (given.folder / "data.jsonl").exists():
        write_data(given.folder / "data.jsonl")
    weights = train(given.folder, given.ranks, given.workers, given.die_at)
    print("weights", *weights)


if __name__ == "__main__":
    main()
