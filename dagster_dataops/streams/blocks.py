"""Files read in blocks of whole lines, from any position at which a block has begun.

Lines come as lists, whose iterators are in C and know how much of them is left: a position costs
nothing for the lines that pass, and is [where the block begins, how many items of it are read].
"""

import os
from abc import abstractmethod
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import xxhash
from typing_extensions import override

from dagster_dataops.errors import StreamSourceError
from dagster_dataops.streams.failures import Counter
from dagster_dataops.streams.stage import Cursor, State

BLOCK_BYTES: Final = 256 << 10
LEAST_BLOCK_BYTES: Final = 1 << 10
_LOOKED_AT: Final = 64 << 10


class Terminator(NamedTuple):
    """What ends a line: its bytes, and the width of a character where that is not 1."""

    text: bytes
    width: int = 1


def file_identity(path: str) -> object:
    """Return what tells the content of a file from others: its length, beginning and end.

    Raises:
        StreamSourceError: It cannot be read.
    """
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        ends = [os.pread(descriptor, _LOOKED_AT, at) for at in (0, max(0, size - _LOOKED_AT))]
    return [size, *map(xxhash.xxh3_64_hexdigest, ends)]


class opened:  # noqa: N801 - used like a function
    """A descriptor on a file for as long as a block lasts.

    Raises:
        StreamSourceError: The file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> int:
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            raise StreamSourceError(self._path, reason) from error
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class BlockCursor(Cursor):
    """Reads a file block by block; subclasses say what is in a block.

    Args:
        path: The file.
        block_bytes: How much to read at once; more where a line is longer.
        counter: Counts lines that are no items.
    """

    def __init__(self, path: str, block_bytes: int, counter: Counter) -> None:
        self.path = path
        self.counter = counter
        self._block_bytes = block_bytes
        self._start = self._skipped = self._failed_before = 0
        self._left: Any = iter(())
        self._length = 0

    @abstractmethod
    def begin(self, descriptor: int) -> int:
        """Look at the head of the file; return where its lines begin."""

    @property
    @abstractmethod
    def terminator(self) -> Terminator:
        """What ends a line; asked for after `begin`."""

    @abstractmethod
    def parse(self, block: bytes, start: int) -> tuple[list[Any], Exception | None]:
        """Return the items of a block, and the error that ends the stream behind them."""

    @override
    def items(self) -> Iterator[Any]:
        return chain.from_iterable(self._blocks())

    def _blocks(self) -> Iterator[Iterator[Any]]:
        with opened(self.path) as descriptor:
            self._start = max(self._start, self.begin(descriptor))
            while block := self._read(descriptor):
                self._failed_before = self.counter.count
                items, error = self.parse(block, self._start)
                self._left, self._length = iter(items), len(items)
                for _ in islice(self._left, self._skipped):
                    pass
                self._skipped = max(0, self._skipped - len(items))
                yield self._left
                if error is not None:
                    raise error
                self._start += len(block)
                self._length = 0
            self._failed_before = self.counter.count

    def _read(self, descriptor: int) -> bytes:
        """Return whole lines from where the next block begins; the last may lack its end."""
        size = self._block_bytes
        while True:
            try:
                block = os.pread(descriptor, size, self._start)
            except OSError as error:
                reason = f"cannot be read: {error.strerror}"
                raise StreamSourceError(self.path, reason) from error
            if len(block) < size:
                return block
            cut = self._last_end(block)
            if cut:
                return block[:cut]
            size *= 2

    def _last_end(self, block: bytes) -> int:
        text, width = self.terminator
        end = len(block)
        while (found := block.rfind(text, 0, end)) >= 0:
            if found % width == 0:
                return found + len(text)
            end = found + len(text) - 1
        return 0

    def line_number(self, offset: int, lines: int) -> int:
        """Return the number, from 1, of the line that is ``lines`` behind byte ``offset``."""
        newlines, newline = 0, self.terminator.text
        with Path(self.path).open("rb") as file:
            while offset > 0 and (block := file.read(min(offset, 1 << 20))):
                newlines += block.count(newline)
                offset -= len(block)
        return newlines + lines + 1

    @override
    def state(self) -> State:
        read = self._length - self._left.__length_hint__() if self._length else 0
        place = [self._start, max(read, self._skipped)]
        return [*place, self._failed_before] if self.counter.saved else place

    @override
    def restore(self, state: State) -> None:
        self._start, self._skipped = state[0], state[1]
        self._left, self._length = iter(()), 0
        if self.counter.saved:
            self.counter.count = self._failed_before = state[2]

    @override
    def restart(self, *, reset_rng: bool = False) -> None:
        self._start = self._skipped = self._length = 0
        self._left = iter(())
        self._failed_before = self.counter.count
