"""Align the records of two inputs by their digests, in order.

What both inputs have is equal, or has moved if it stands at another place among the others. The
rest is in gaps between equal records: changed, gone or new. Memory holds a byte for each record, a
window of each input, and the digests of a million records.
"""

from array import array
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from itertools import chain
from typing import Final, NamedTuple, Protocol

_BLOCK: Final = 1 << 16  # records
_WIDEST: Final = 4096  # records within which the place of another one is looked for
_NARROWEST: Final = 16
_LONGEST_GAP: Final = 512  # records of a step
_AT_ONCE: Final = 1_000_000  # records that are counted in memory


class Change(Enum):
    """How a record, or a line, differs between two versions."""

    EQUAL = "equal in both"
    CHANGED = "changed"
    GONE = "only in the first"
    NEW = "only in the second"
    GAP_BEFORE = "of the first, between equal records"
    GAP_AFTER = "of the second, between equal records"
    MOVED_BEFORE = "of the first, at another place in the second"
    MOVED_AFTER = "of the second, at another place in the first"


class InputStep(NamedTuple):
    """A step through the records of two versions.

    Attributes:
        change: How they differ; a step is of the first version, of the second, or of both.
        number: The number of such records, which follow one another.
        key: Of one that has moved, the key that it has in both versions.
    """

    change: Change
    number: int = 1
    key: int = 0


class Digests(Protocol):
    """The digests of the records of an input, in order."""

    def __len__(self) -> int:
        """Return the number of records."""
        ...

    def read(self, first: int, count: int) -> "array[int]":
        """Return digests from a record on; fewer only at the end."""
        ...


def aligned(before: Digests, after: Digests) -> Iterator[InputStep]:
    """Yield the steps of an alignment. Each record of each input is in one step, in its order."""
    start = _equal_start(before, after)
    if start:
        yield InputStep(Change.EQUAL, start)
    if start < max(len(before), len(after)):
        yield from _Alignment(before, after, start).steps()


def _equal_start(before: Digests, after: Digests) -> int:
    """Return the number of equal records at the start, in whole blocks or all."""
    start, end = 0, min(len(before), len(after))
    while start < end and before.read(start, _BLOCK) == after.read(start, _BLOCK):
        start += _BLOCK
    return min(start, end)


class _Alignment:
    """Walks through two inputs at once, from a record on up to which they are equal."""

    def __init__(self, before: Digests, after: Digests, start: int) -> None:
        common = _common(before, after, start)
        self._before = _Cursor(before, start, common[0], Change.GAP_BEFORE, Change.MOVED_BEFORE)
        self._after = _Cursor(after, start, common[1], Change.GAP_AFTER, Change.MOVED_AFTER)
        self._window = _WIDEST
        self._stride = 1

    def steps(self) -> Iterator[InputStep]:
        before, after = self._before, self._after
        while before.left or after.left:
            if equal := before.equal_with(after):
                before.advance(equal)
                after.advance(equal)
                yield InputStep(Change.EQUAL, equal)
                continue
            gaps = [step for side in (before, after) if (step := side.pass_gap()) is not None]
            yield from gaps or self._to_next_equal()

    def _to_next_equal(self) -> Iterator[InputStep]:
        """Yield the steps to where the heads are equal, or past both if that is not in sight."""
        before, after = self._before, self._after
        ahead = before.find(after, self._window), after.find(before, self._window)
        near = [place for place in ahead if place is not None]
        self._window = min(2 * self._window, _WIDEST) if near else self._window // 2
        self._window = max(self._window, _NARROWEST)
        self._stride = 1 if near else min(2 * self._stride, _NARROWEST)
        if not near:  # in an input that was shuffled, no search would find anything
            yield from before.pass_records(self._stride)
            yield from after.pass_records(self._stride)
        elif ahead[0] == min(near):
            yield from before.pass_records(min(near))
        else:
            yield from after.pass_records(min(near))


class _Cursor:
    """A place in an input.

    Args:
        digests: Of the input.
        start: The first record.
        common: For each record from there on 1 if the other input has it, too, else 0.
        gap: What a record is that the other input does not have.
        moved: What one is that it has at another place.
    """

    def __init__(
        self, digests: Digests, start: int, common: bytearray, gap: Change, moved: Change
    ) -> None:
        self._digests = digests
        self._common = common
        self._start = self._first = start  # the first one of all, and of the block
        self._gap, self._moved = gap, moved
        self._block: array[int] = array("Q")
        self._at = 0
        self.left = len(digests) - start
        self._fill(1)

    def equal_with(self, other: "_Cursor") -> int:
        """Return how many records from here on are equal to those of another cursor."""
        if not (self.left and other.left):
            return 0
        equal, step = 0, 1
        most = min(self._known, other._known)  # noqa: SLF001 - of the same class
        while step and equal < most:
            size = min(step, most - equal)
            if self._ahead(equal, size) == other._ahead(equal, size):  # noqa: SLF001
                equal += size
                step *= 2
            else:
                step = size // 2
        return equal

    @property
    def _known(self) -> int:
        """The number of records from here on in the block."""
        return len(self._block) - self._at

    def _ahead(self, first: int, number: int) -> "array[int]":
        """Return digests of records from here on."""
        return self._block[self._at + first : self._at + first + number]

    def advance(self, count: int) -> None:
        """Go on by a number of records of the block."""
        self._at += count
        self.left -= count
        if self._at == len(self._block):
            self._fill(1)

    def pass_gap(self) -> InputStep | None:
        """Go past the records here that the other input does not have; ``None`` if there is none.

        Those of a long gap are in several steps, so that a caller sees both sides in turn.
        """
        here = self._number
        end = self._common.find(1, here, here + _LONGEST_GAP)
        count = min((_LONGEST_GAP if end < 0 else end - here), self._known)
        if not (count and self.left):
            return None
        self.advance(count)
        return InputStep(self._gap, count)

    def pass_records(self, count: int) -> Iterator[InputStep]:
        """Go past records of the block, of which the first one is in the other input, too."""
        for _ in range(min(count, self.left)):
            head, common = self._block[self._at], self._common[self._number]
            self.advance(1)
            yield InputStep(self._moved, key=head) if common else InputStep(self._gap)

    def find(self, other: "_Cursor", window: int) -> int | None:
        """Return how many records ahead the record of another cursor is; ``None`` if not near."""
        if not (self.left and other.left):
            return None
        self._fill(window)
        (head,) = other._ahead(0, 1)  # noqa: SLF001 - of the same class
        try:
            return self._block.index(head, self._at, self._at + window) - self._at
        except ValueError:
            return None

    @property
    def _number(self) -> int:
        """The number of the record here, from the start on."""
        return self._first + self._at - self._start

    def _fill(self, count: int) -> None:
        """Read on until the block has ``count`` records from here on, or the input ends."""
        if self._known >= min(count, self.left):
            return
        self._first += self._at
        self._at = 0
        self._block = self._digests.read(self._first, max(count, _BLOCK))


def _common(before: Digests, after: Digests, start: int) -> tuple[bytearray, bytearray]:
    """Return for each record 1 if the other input has it, too, as often up to there; else 0."""
    flags = bytearray(len(before) - start), bytearray(len(after) - start)
    passes = 1 + max(map(len, flags)) // _AT_ONCE
    for number in range(passes):
        counts = [_counts(side, start, number, passes) for side in (before, after)]
        _mark(flags[0], before, start, counts[1], (number, passes))
        _mark(flags[1], after, start, counts[0], (number, passes))
    return flags


def _counts(digests: Digests, start: int, number: int, passes: int) -> Counter[int]:
    """Return how often each digest of one of several passes occurs."""
    counts: Counter[int] = Counter()
    for block in _blocks(digests, start):
        counts.update(
            block if passes == 1 else [digest for digest in block if digest % passes == number]
        )
    return counts


def _mark(
    flags: bytearray, digests: Digests, start: int, others: Counter[int], of: tuple[int, int]
) -> None:
    """Set the flags of the records of a pass that the other input has, too; count them down."""
    number, passes = of
    for at, digest in enumerate(chain.from_iterable(_blocks(digests, start))):
        if digest % passes == number and (left := others[digest]):
            others[digest] = left - 1
            flags[at] = 1


def _blocks(digests: Digests, start: int) -> "Iterator[array[int]]":
    while block := digests.read(start, _BLOCK):
        yield block
        start += len(block)
