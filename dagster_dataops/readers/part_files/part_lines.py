"""Read the lines of part files, each with its file and line number.

Lines are not decoded here, so that a line with invalid text is counted and reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typing_extensions import override

from dagster_dataops.readers.part_files.part_names import PartNames, shard_of
from dagster_dataops.streams.core.finitude import Finitude
from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.core.stage import Cursor, ReadContext, Stage, State
from dagster_dataops.streams.files.text_lines import LineEnding
from dagster_dataops.streams.text import read_text

_MARK: Final = "\xef\xbb\xbf"  # the bytes of a byte order mark, as Latin-1


@dataclass(frozen=True, eq=False)
class PartLines(Stage):
    """Yield tuples of file name, line number from 1, and line, decoded as Latin-1.

    Attributes:
        parts: The files.
        shard: The index of the shard to read.
        shards: The number of shards.
        shuffled: Whether the order of all files changes in each epoch after the first.
        seed: The seed of that order.
        drawn: Whether the seed was generated randomly. If so, a restored state replaces it.
        skip_blank_lines: Whether to skip lines of white space.
    """

    name: ClassVar[str] = "part_files"
    parts: PartNames
    shard: int
    shards: int
    shuffled: bool
    seed: int
    drawn: bool
    skip_blank_lines: bool

    @property
    @override
    def finitude(self) -> Finitude:
        return Finitude.FINITE

    @override
    def open(self, context: ReadContext) -> Cursor:
        return PartCursor(self, context)

    @property
    @override
    def draws_seed(self) -> bool:
        return self.drawn

    @override
    def options(self) -> dict[str, Any]:
        return {
            "names": self.parts.names,
            "shard": [self.shard, self.shards],
            "seed": self.seed if self.shuffled and not self.drawn else None,
            "shuffled": self.shuffled,
            "skip_blank_lines": self.skip_blank_lines,
        }

    @override
    def seed_in(self, root: int) -> int | None:
        return self.seed if self.shuffled else None

    @override
    def identity(self) -> object:
        self.parts.check()
        return [_line_stage(self.parts.path(name)).identity() for name in self.parts.names]


class PartCursor(Cursor):
    """The state: seed, epoch, index of the file, lines read of it, and the position in it."""

    def __init__(self, stage: PartLines, context: ReadContext) -> None:
        # Latin-1 decodes every line, so failures are neither counted nor shared.
        self._stage, self._context = stage, ReadContext(context.seed, FailureHandler())
        self._seed = stage.seed
        self._epoch = self._place = self._number = 0
        self._inner: Cursor | None = None
        self._to_restore: State = None  # the position to restore in the next file

    @override
    def items(self) -> Iterator[Any]:
        stage = self._stage
        skip = stage.skip_blank_lines
        stage.parts.check(warn=self._epoch == 0)
        order = stage.parts.order(self._seed, self._epoch if stage.shuffled else 0)
        names = shard_of(order, stage.shard, stage.shards)
        while self._place < len(names):
            name = names[self._place]
            self._inner = _line_stage(stage.parts.path(name)).open(self._context)
            if self._to_restore is not None:
                self._inner.restore(self._to_restore)
                self._to_restore = None
            for line in self._inner.items():
                self._number += 1
                if self._number == 1:
                    line = line.removeprefix(_MARK)  # noqa: PLW2901 - the same line
                if not skip or line.strip():
                    yield name, self._number, line
            self._inner, self._number, self._place = None, 0, self._place + 1

    @override
    def state(self) -> State:
        inner = self._to_restore if self._inner is None else self._inner.state()
        return [self._seed, self._epoch, self._place, self._number, inner]

    @override
    def restore(self, state: State) -> None:
        seed, self._epoch, self._place, self._number, self._to_restore = state
        self._seed = seed if self._stage.drawn else self._stage.seed
        self._inner = None

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._epoch = 0 if reset_rng else self._epoch + 1
        self._place = self._number = 0
        self._inner = self._to_restore = None


def _line_stage(path: str) -> Stage:
    return read_text(path, encoding="latin-1", line_ending=LineEnding.LF).stage
