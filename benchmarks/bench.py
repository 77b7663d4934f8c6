"""The arguments of every workload."""

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import comparing, corpus
from benchmarks.comparing import WrongOutputError
from benchmarks.figures import FAILED, Figure, about_runs
from benchmarks.measuring import Contender, ContenderError, Run, in_turn
from benchmarks.operators import Record

Check = Callable[[Mapping[str, Run]], None]


@dataclass(frozen=True)
class Bench:
    """The place and the conditions of measurements.

    Attributes:
        folder: The folder for inputs and results.
        full: Whether the sizes are those of the goals, or a fraction of them.
        rounds: The number of rounds in which contenders run in turn.
        workers: The number of worker processes.
        peers: The folder of the peers' virtual environments, if peers are measured.
    """

    folder: Path
    full: bool = False
    rounds: int = 3
    workers: int = 2
    peers: Path | None = None

    def size(self, full: int, small: int) -> int:
        """Return the rows to use."""
        return full if self.full else small

    def source(self, name: str, records: Iterable[Record]) -> Path:
        """Write an input, unless an earlier workload has; return its path."""
        path = self.folder / f"{name}.jsonl"
        return path if path.exists() else corpus.write(path, records)

    def in_turn(
        self,
        contenders: Mapping[str, Contender],
        check: Check = comparing.same_bytes,
        rounds: int | None = None,
    ) -> dict[str, list[Run]]:
        """Run ``contenders`` in turn; the results of the first are the right ones."""
        return in_turn(contenders, rounds or self.rounds, self.folder / "runs", check)


def collected(
    name: str, measure: Callable[[Bench], Iterable[Figure]], bench: Bench
) -> list[Figure]:
    """Measure and print each figure at once; a workload that fails ends only itself."""
    figures: list[Figure] = []
    try:
        for figure in measure(bench):
            note = ", ".join(filter(None, [figure.note, about_runs(figure.runs)]))
            print(f"{figure.workload} {figure.name}: {figure.value:.4g} {figure.unit} ({note})")
            figures.append(figure)
    except (ContenderError, WrongOutputError) as error:
        print(f"{name} failed: {error}", file=sys.stderr)
        reason = " ".join(str(error).split())[-100:]
        figures.append(Figure(name, FAILED, math.nan, "", most=0, note=reason))
    return figures
