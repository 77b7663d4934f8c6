"""What every workload is given."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import comparing, corpus
from benchmarks.measuring import Contender, Run, in_turn
from benchmarks.operators import Record

Check = Callable[[Mapping[str, Run]], None]


@dataclass(frozen=True)
class Bench:
    """Where and how measurements are made.

    Attributes:
        folder: For inputs and results.
        full: Whether at the sizes of the goals, or at a fraction of them.
        rounds: How often contenders run in turn.
        workers: Worker processes.
        peers: Folder of the peers' virtual environments, if peers are wanted.
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
        """Run ``contenders`` in turn; the first is the one whose results are right."""
        return in_turn(contenders, rounds or self.rounds, self.folder / "runs", check)
