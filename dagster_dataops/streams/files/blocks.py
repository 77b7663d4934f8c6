"""Read files in blocks of whole lines, from any position at which a block starts.

Items come as lists, whose iterators are implemented in C and know their remaining length, so
keeping the position costs nothing per item. The position is [start of the block, items read].
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from dagster_dataops.errors import DamagedFileError, StreamSourceError
from dagster_dataops.foundation.override import override
from dagster_dataops.streams.core.stage import State
from dagster_dataops.streams.files.contents import Content
from dagster_dataops.streams.files.file_stages import FileCursor

Piece = TypeVar("Piece")
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

    The stage has the fields ``block_size``, the number of bytes to read at once (longer lines are
    read in one piece), and ``origin``.

    Attributes:
        lines_before: The number of lines before the block, if lines are numbered.
    """

    saved: ClassVar[tuple[str, ...]] = ("_start", "_skipped", "lines_before", "failed_before")
    terminator = Terminator(b"\n")
    _counted = (0, 0)  # a known pair (byte position, number of lines before it)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.location.path

    @property
    def numbered(self) -> bool:
        """Whether the lines before each block are counted."""
        return self.stage.origin.line_key is not None

    @override
    def reset(self) -> None:
        super().reset()
        self._start = self._skipped = self.lines_before = 0
        self._failed_before = self.failed

    @override
    def state(self) -> State:  # as the base does it, but it is called for every item
        read = self._length - self._remaining.__length_hint__()
        passed = max(self._skipped, read)
        return {
            "start": self._start,
            "skipped": passed,
            "lines_before": self.lines_before,
            "failed_before": self._failed_before,
        }

    @abstractmethod
    def begin(self, content: Content) -> int:
        """Inspect the head of the file, set `terminator`, return the offset of the first line."""

    @abstractmethod
    def parse(self, block: bytes, start: int) -> ParsedBlock:
        """Return the items of a block that starts at byte ``start``."""

    def parse_each(
        self, pieces: Iterable[tuple[int, Piece]], parse: Callable[[int, Piece], Any]
    ) -> ParsedBlock:
        """Return the items of a block with invalid ones, which are handled as failures.

        Args:
            pieces: The number of lines before each piece in the block, and the piece.
            parse: Returns the item of a piece, or raises `StreamSourceError`.
        """
        block = ParsedBlock([], None, lines=(lines := []))
        for number, piece in pieces:
            try:
                block.items.append(parse(number, piece))
                lines.append(number)
            except StreamSourceError as error:
                try:
                    self.counter.handle(piece, error)
                except Exception as final:  # noqa: BLE001 - raised after the items before it
                    return block._replace(error=final)
        return block

    @override
    def blocks(self) -> Iterator[Iterator[Any]]:
        with self.location.opened() as content:
            self._begin(content)
            while block := self.read_block(content, self._start):
                self._failed_before = self.counter.count
                parsed = self.parse(block, self._start)
                is_marked = self.location.partition or any(self.stage.origin)
                items = self._with_origin(parsed) if is_marked else parsed.items
                remaining = self.begin_block(items)
                for _ in islice(remaining, self._skipped):
                    pass
                self._skipped = max(0, self._skipped - len(items))
                yield remaining
                if parsed.error is not None:
                    raise parsed.error
                self._start += len(block)
                if self.numbered:
                    self.lines_before += self.lines_in(block)
                self.begin_block([])
            self._failed_before = self.counter.count

    def _begin(self, content: Content) -> None:
        begin = self.begin(content)
        if begin > self._start:
            self._start = begin
            if self.numbered:
                self.lines_before = self.lines_in(content.read_at(begin, 0))

    def _with_origin(self, parsed: ParsedBlock) -> list[Any]:
        """Return the records with their file, line number and columns of folders added."""
        records = self.location.located(parsed.items, self.stage.origin.file_key)
        key, before = self.stage.origin.line_key, self.lines_before + 1
        if key is None:
            return records
        lines = range(len(records)) if parsed.lines is None else parsed.lines
        numbered = zip(records, lines, strict=True)
        return [{**record, key: before + line} for record, line in numbered]

    def read_block(self, content: Content, start: int) -> bytes:
        """Return the block that starts at byte ``start``; empty at the end of the file.

        Raises:
            StreamSourceError: The file cannot be read at ``start``, or the line there is longer
                than `LINE_BYTES`.
        """
        return self.whole_lines(content, start, self.stage.block_size)[0]

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
        """Return the next block size to try for a line that is longer than ``size`` bytes."""
        if size < LINE_BYTES:
            return min(2 * size, LINE_BYTES)
        number = self.lines_before + 1 if self.numbered else self.line_number(start, 0)
        raise DamagedFileError(f"{self.path}, line {number}", TOO_LONG)

    def _end_of_last_line(self, block: bytes) -> int:
        text, width = self.terminator
        end = len(block)
        while (end_mark := block.rfind(text, 0, end)) >= 0:
            if end_mark % width == 0:
                return end_mark + len(text)
            end = end_mark + len(text) - 1
        return 0

    def lines_in(self, block: bytes) -> int:
        """Return the number of lines that end in a block."""
        return block.count(self.terminator.text)

    def line_number(self, offset: int, lines: int) -> int:
        """Return the number, from 1, of the line ``lines`` lines after byte ``offset``."""
        at, number = self._counted if self._counted[0] <= offset else (0, 0)
        with self.location.opened() as content:
            while at < offset and (block := content.read_at(min(offset - at, 1 << 20), at)):
                number += self.lines_in(block)
                at += len(block)
        self._counted = (at, number)
        return number + lines + 1
