"""Read the lines of part files, each with its file and line number.

Lines are not decoded here, so that a line with invalid text is counted and reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dagster_dataops.foundation.override import override
from dagster_dataops.readers.part_files.part_names import PartNames
from dagster_dataops.streams.core.item_failures import FailureHandler
from dagster_dataops.streams.core.random_access import ShardSlice
from dagster_dataops.streams.core.stage import (
    Cursor,
    NestingCursor,
    ReadContext,
    SourceStage,
    Stage,
)
from dagster_dataops.streams.files.text_lines import LineEnding
from dagster_dataops.streams.text_streams import read_text

_MARK: Final = "\xef\xbb\xbf"  # the bytes of a byte order mark, as Latin-1


@dataclass(eq=False)
class PartLines(NestingCursor, SourceStage):
    """Yield tuples of file name, line number from 1, and line, decoded as Latin-1.

    The seed is saved, with the epoch, the index of the file, the lines read of it and the position
    in it.

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
    saved: ClassVar[tuple[str, ...]] = ("seed_in_use", "_epoch", "_place", "_number", "within")
    parts: PartNames
    shard: int
    shards: int
    shuffled: bool
    seed: int
    drawn: bool
    skip_blank_lines: bool

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

    @override
    def begin(self, context: ReadContext) -> None:
        # Latin-1 decodes every line, so failures are neither counted nor shared.
        self._context = ReadContext(context.seed, FailureHandler())
        self._epoch = 0

    @override
    def reset(self) -> None:
        self._place = self._number = 0
        self.within = None

    @property
    def seed_in_use(self) -> int:
        """The seed of the order; a saved seed replaces one that was generated randomly."""
        return self.seed

    @seed_in_use.setter
    def seed_in_use(self, seed: int) -> None:
        self.seed = seed if self.drawn else self.seed

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        super().restart(reset_rng=reset_rng)
        self._epoch = 0 if reset_rng else self._epoch + 1

    def opened_part(self, path: str) -> Cursor:
        """Return a cursor over the items of a part, at its start."""
        return _line_stage(path).open(self._context)

    def first(self, line: Any) -> Any:
        """Return the first item of a part, without a byte order mark."""
        return line.removeprefix(_MARK)

    @override
    def items(self) -> Iterator[Any]:
        skip = self.skip_blank_lines
        self.parts.check(warn=self._epoch == 0)
        order = self.parts.order(self.seed, self._epoch if self.shuffled else 0)
        shard = ShardSlice(self.shard, self.shards, contiguous=True)
        names = [order[place] for place in shard.places(len(order))]
        while self._place < len(names):
            name = names[self._place]
            lines = self.opened_part(self.parts.path(name))
            self.enter(lines)
            for line in lines.items():
                self._number += 1
                if self._number == 1:
                    line = self.first(line)  # noqa: PLW2901 - the same line
                if not skip or line.strip():
                    yield name, self._number, line
            self.inner, self._number, self._place = None, 0, self._place + 1


def _line_stage(path: str) -> Stage:
    return read_text(path, encoding="latin-1", line_ending=LineEnding.LF).stage
