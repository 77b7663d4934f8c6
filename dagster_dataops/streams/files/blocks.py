"""Read files in blocks of whole lines, from any position at which a block starts.

Items come as lists, whose iterators are implemented in C and know their remaining length, so
keeping the position costs nothing per item. The position is [start of the block, items read].
"""

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.core.item_failures import FailureCounter
from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_stages import NOWHERE, FileCursor, Origin
from dagster_dataops.streams.files.locations import Location

BLOCK_BYTES: Final = 256 << 10
LEAST_BLOCK_BYTES: Final = 1 << 10
LINE_BYTES: Final = 256 << 20  # the maximum length of a line, or of a row of several lines


TOO_LONG: Final = (
    f"is longer than {LINE_BYTES >> 20} MiB, the maximum size of one record; "
    "split it, or write the file with one line per record"
)


class Terminator(NamedTuple):
    """The bytes that end a line, and the number of bytes per character."""

    text: bytes
    width: int = 1


class ParsedBlock(NamedTuple):
    """The items of a block.

    Attributes:
        items: The items.
        error: The error that ends the stream after these items, if any.
        lines: For each item, the number of lines before it in the block; ``None`` if each line is
            one item.
    """

    items: list[Any]
    error: Exception | None = None
    lines: list[int] | None = None


class BlockCursor(FileCursor):
    """Read a file block by block. Subclasses parse the blocks.

    Args:
        location: The file.
        block_bytes: The number of bytes to read at once. Longer lines are read in one piece.
        counter: Counts the lines that are not valid items.
        origin: The keys under which records hold their file and line number.
    """

    def __init__(
        self,
        location: Location,
        block_bytes: int,
        counter: FailureCounter,
        origin: Origin = NOWHERE,
    ) -> None:
        self.location, self.path = location, location.path
        self.counter = counter
        self.terminator = Terminator(b"\n")
        self._origin = origin
        self.numbered = origin.line_key is not None
        self.lines_before = 0  # the number of lines before the block, if lines are numbered
        self._counted = (0, 0)  # a known pair (byte position, number of lines before it)
        self.block_bytes = block_bytes
        self._start = self._skipped = self._failed_before = 0
        self._remaining: Any = iter(())
        self._length = 0

    @property
    def has_begun(self) -> bool:
        """Whether the current block is not the first one."""
        return self._start > 0

    @abstractmethod
    def begin(self, content: Content) -> int:
        """Inspect the head of the file, set `terminator`, return the offset of the first line."""

    @abstractmethod
    def parse(self, block: bytes, start: int) -> ParsedBlock:
        """Return the items of a block that starts at byte ``start``."""

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        with self.location.opened() as content:
            self._begin(content)
            while block := self.read(content, self._start):
                self._failed_before = self.counter.count
                parsed = self.parse(block, self._start)
                items = self._with_origin(parsed) if any(self._origin) else parsed.items
                self._remaining, self._length = iter(items), len(items)
                for _ in islice(self._remaining, self._skipped):
                    pass
                self._skipped = max(0, self._skipped - len(items))
                yield self._remaining
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

    def _with_origin(self, parsed: ParsedBlock) -> list[Any]:
        """Return the records with their file and line number added."""
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
        """Return the block that starts at byte ``start``; empty at the end of the file.

        Raises:
            StreamSourceError: The file cannot be read at ``start``, or the line there is longer
                than `LINE_BYTES`.
        """
        return self.whole_lines(content, start, self.block_bytes)[0]

    def whole_lines(self, content: Content, start: int, size: int) -> tuple[bytes, bool]:
        """Return a block of whole lines, and whether the file ends after it.

        The block has at most ``size`` bytes, unless its first line is longer. The last line of a
        file may lack its terminator.
        """
        while True:
            block = content.read_at(size, start)
            failure = content.failure
            if len(block) < size and failure is None:
                return block, True
            cut = self._end_of_last_line(block)
            if cut:
                return block[:cut], False
            if failure is not None:
                raise failure
            size = self.larger(size, start)

    def larger(self, size: int, start: int) -> int:
        """Return the next block size to try for a line that is longer than ``size`` bytes.

        Raises:
            StreamSourceError: The line is longer than `LINE_BYTES`.
        """
        if size < LINE_BYTES:
            return min(2 * size, LINE_BYTES)
        number = self.lines_before + 1 if self.numbered else self.line_number(start, 0)
        raise StreamSourceError(f"{self.path}, line {number}", TOO_LONG)

    def _end_of_last_line(self, block: bytes) -> int:
        text, width = self.terminator
        end = len(block)
        while (found := block.rfind(text, 0, end)) >= 0:
            if found % width == 0:
                return found + len(text)
            end = found + len(text) - 1
        return 0

    def lines_in(self, block: bytes) -> int:
        """Return the number of lines that end in a block."""
        return block.count(self.terminator.text)

    def line_number(self, offset: int, lines: int) -> int:
        """Return the number, from 1, of the line ``lines`` lines after byte ``offset``."""
        at, found = self._counted if self._counted[0] <= offset else (0, 0)
        with self.location.opened() as content:
            while at < offset and (block := content.read_at(min(offset - at, 1 << 20), at)):
                found += self.lines_in(block)
                at += len(block)
        self._counted = (at, found)
        return found + lines + 1

    @override
    def state(self) -> State:
        read = self._length - self._remaining.__length_hint__() if self._length else 0
        place = [self._start, max(read, self._skipped)]
        if self.numbered:
            place.append(self.lines_before)
        return [*place, self._failed_before] if self.counter.saved else place

    @override
    def restore(self, state: State) -> None:
        # Adding 0 raises TypeError unless it is a number.
        self._start, self._skipped = state[0] + 0, state[1] + 0
        self._remaining, self._length = iter(()), 0
        if self.numbered:
            self.lines_before = state[2]
        if self.counter.saved:
            self.counter.count = self._failed_before = state[-1]

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._start = self._skipped = self._length = self.lines_before = 0
        self._remaining = iter(())
        self._failed_before = self.counter.count
