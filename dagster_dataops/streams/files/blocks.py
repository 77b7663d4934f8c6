"""Files read in blocks of whole lines, from any position at which a block has begun.

Lines come as lists, whose iterators are in C and know how much of them is left: a position costs
nothing for the lines that pass, and is [where the block begins, how many items of it are read].
"""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.core.item_failures import Counter
from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_stages import NOWHERE, FileCursor, Origin
from dagster_dataops.streams.files.locations import Location

BLOCK_BYTES: Final = 256 << 10
LEAST_BLOCK_BYTES: Final = 1 << 10
LINE_BYTES: Final = 256 << 20  # the longest line, or row of several lines


TOO_LONG: Final = (
    f"is longer than {LINE_BYTES >> 20} MiB, which is the most that is read as one record; "
    "split it, or write the file with a line for each record"
)


class Terminator(NamedTuple):
    """What ends a line: its bytes, and the width of a character where that is not 1."""

    text: bytes
    width: int = 1


class Parsed(NamedTuple):
    """What is in a block.

    Attributes:
        items: Its items.
        error: What ends the stream behind them.
        lines: How many lines of the block stand before that of each; ``None`` if each line is one
            item.
    """

    items: list[Any]
    error: Exception | None = None
    lines: list[int] | None = None


class BlockCursor(FileCursor):
    """Reads a file block by block; subclasses say what is in a block.

    Args:
        location: The file.
        block_bytes: How much to read at once; more where a line is longer.
        counter: Counts lines that are no items.
        origin: What the records tell of where they come from.
    """

    def __init__(
        self, location: Location, block_bytes: int, counter: Counter, origin: Origin = NOWHERE
    ) -> None:
        self.location, self.path = location, location.path
        self.counter = counter
        self.terminator = Terminator(b"\n")
        self._origin = origin
        self.numbered = origin.line_key is not None
        self.lines_before = 0  # the block, where it is numbered
        self._counted = (0, 0)  # (a position, lines before it), to go on from
        self.block_bytes = block_bytes
        self._start = self._skipped = self._failed_before = 0
        self._left: Any = iter(())
        self._length = 0

    @property
    def has_begun(self) -> bool:
        """Whether it goes on behind the head of the file."""
        return self._start > 0

    @abstractmethod
    def begin(self, content: Content) -> int:
        """Look at the head of the file, set `terminator` by it; return where its lines begin."""

    @abstractmethod
    def parse(self, block: bytes, start: int) -> Parsed:
        """Return what is in a block, which begins at byte ``start``."""

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        with self.location.opened() as content:
            self._begin(content)
            while block := self.read(content, self._start):
                self._failed_before = self.counter.count
                parsed = self.parse(block, self._start)
                items = self._marked(parsed) if any(self._origin) else parsed.items
                self._left, self._length = iter(items), len(items)
                for _ in islice(self._left, self._skipped):
                    pass
                self._skipped = max(0, self._skipped - len(items))
                yield self._left
                if parsed.error is not None:
                    raise parsed.error
                self._start += len(block)
                if self.numbered:
                    self.lines_before += self.lines_in(block)
                self._length = 0
            self._failed_before = self.counter.count

    def _begin(self, content: Content) -> None:
        begin = self.begin(content)
        if begin > self._start:
            self._start = begin
            if self.numbered:
                self.lines_before = self.lines_in(content.read_at(begin, 0))

    def _marked(self, parsed: Parsed) -> list[Any]:
        """Return the records with where they come from."""
        marks: dict[str, Any] = {}
        if self._origin.file_key is not None:
            marks[self._origin.file_key] = self.path
        key, before = self._origin.line_key, self.lines_before + 1
        if key is None:
            return [{**one, **marks} for one in parsed.items]
        lines = range(len(parsed.items)) if parsed.lines is None else parsed.lines
        numbered = zip(parsed.items, lines, strict=True)
        return [{**one, **marks, key: before + line} for one, line in numbered]

    def read(self, content: Content, start: int) -> bytes:
        """Return a block that begins at byte ``start``; none at the end.

        Raises:
            StreamSourceError: It cannot be read, or holds a line longer than `LINE_BYTES`, and all
                before it has been.
        """
        return self.whole_lines(content, start, self.block_bytes)[0]

    def whole_lines(self, content: Content, start: int, size: int) -> tuple[bytes, bool]:
        """Return whole lines, ``size`` bytes or more where one is longer, and if the file ends.

        The last line of a file comes with or without what ends it.
        """
        while True:
            block = content.read_at(size, start)
            failure = content.failure
            if len(block) < size and failure is None:
                return block, True
            cut = self._last_end(block)
            if cut:
                return block[:cut], False
            if failure is not None:
                raise failure
            size = self.larger(size, start)

    def larger(self, size: int, start: int) -> int:
        """Return how much to read of a line that is longer than ``size`` bytes.

        Raises:
            StreamSourceError: It is longer than any may be.
        """
        if size < LINE_BYTES:
            return min(2 * size, LINE_BYTES)
        number = self.lines_before + 1 if self.numbered else self.line_number(start, 0)
        raise StreamSourceError(f"{self.path}, line {number}", TOO_LONG)

    def _last_end(self, block: bytes) -> int:
        text, width = self.terminator
        end = len(block)
        while (found := block.rfind(text, 0, end)) >= 0:
            if found % width == 0:
                return found + len(text)
            end = found + len(text) - 1
        return 0

    def lines_in(self, block: bytes) -> int:
        """Return how many lines end in a block."""
        return block.count(self.terminator.text)

    def line_number(self, offset: int, lines: int) -> int:
        """Return the number, from 1, of the line that is ``lines`` behind byte ``offset``."""
        at, found = self._counted if self._counted[0] <= offset else (0, 0)
        with self.location.opened() as content:
            while at < offset and (block := content.read_at(min(offset - at, 1 << 20), at)):
                found += self.lines_in(block)
                at += len(block)
        self._counted = (at, found)
        return found + lines + 1

    @override
    def state(self) -> State:
        read = self._length - self._left.__length_hint__() if self._length else 0
        place = [self._start, max(read, self._skipped)]
        if self.numbered:
            place.append(self.lines_before)
        return [*place, self._failed_before] if self.counter.saved else place

    @override
    def restore(self, state: State) -> None:
        self._start, self._skipped = state[0] + 0, state[1] + 0  # refuses what is no number
        self._left, self._length = iter(()), 0
        if self.numbered:
            self.lines_before = state[2]
        if self.counter.saved:
            self.counter.count = self._failed_before = state[-1]

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._start = self._skipped = self._length = self.lines_before = 0
        self._left = iter(())
        self._failed_before = self.counter.count
