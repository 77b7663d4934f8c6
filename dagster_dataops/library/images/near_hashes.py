"""Which of many 64-bit hashes are near others: all pairs within a distance, none left out.

Hashes are compared with all, or only with those that share some of their bits. If a hash is cut
into blocks, two hashes that differ in at most ``distance`` bits agree in all blocks but
``distance``. For each choice of that many blocks, the hashes are sorted by their bits in these
blocks, so that those that agree stand together.
"""

from collections.abc import Iterator
from itertools import combinations, pairwise
from math import comb
from typing import Any, Final

_BITS: Final = 64
_ROWS: Final = 1024  # hashes that are looked up at once
_MOST_PAIRS: Final = 1 << 18  # that are compared at once, 2 MB
_MOST_BLOCKS: Final = 24
_MOST_LISTS: Final = 200
_UNSORTED: Final = 1 << 12  # hashes that are compared with all until they are sorted
_SORTED_BYTES: Final = 12  # of a hash in a sorted list
# Nanoseconds for each hash that is looked up: to compare it with another one; with one that shares
# bits; to find those in a sorted list.
_COMPARE, _CANDIDATE, _SEARCH = 1.0, 15.0, 300.0


class NearHashes:
    """A growing collection of 64-bit hashes that finds those within a distance.

    Args:
        distance: Most bits in which near hashes differ.
        count: The number of hashes that it can hold.
        max_bytes: Approximate limit of the memory for sorted lists.
    """

    def __init__(self, distance: int, count: int, max_bytes: int) -> None:
        import numpy as np

        self._np, self._distance = np, distance
        self._masks = [np.uint64(mask) for mask in masks_for(distance, count, max_bytes)]
        self._values = np.zeros(count, np.uint64)
        self._lists: list[tuple[Any, Any]] = []  # bits and positions, by the bits, of each mask
        self._sorted = self._count = 0

    def add(self, values: Any) -> None:
        """Add an array of hashes; their positions follow those before."""
        self._values[self._count : self._count + len(values)] = values
        self._count += len(values)
        if self._masks and self._count - self._sorted > max(_UNSORTED, self._sorted // 4):
            self._lists = [self._sorted_by(mask) for mask in self._masks]
            self._sorted = self._count

    def _sorted_by(self, mask: Any) -> tuple[Any, Any]:
        bits = self._values[: self._count] & mask
        order = self._np.argsort(bits)
        return bits[order], order.astype(self._np.uint32)

    def near(self, values: Any) -> Iterator[tuple[Any, Any]]:
        """Yield all pairs of near hashes: rows of the array ``values``, and positions in here.

        The pairs come in pairs of arrays; one may come several times.
        """
        for mask, (bits, positions) in zip(self._masks, self._lists, strict=False):
            yield from self._near_in_list(values, values & mask, bits, positions)
        step = max(1, _MOST_PAIRS // len(values))
        for start in range(self._sorted, self._count, step):
            block = self._values[start : min(start + step, self._count)]
            rows, places = self.pairs(values, block)
            yield rows, places + start

    def _near_in_list(
        self, values: Any, wanted: Any, bits: Any, positions: Any
    ) -> Iterator[tuple[Any, Any]]:
        np = self._np
        firsts = np.searchsorted(bits, wanted)
        counts = np.searchsorted(bits, wanted, "right") - firsts
        ends = np.cumsum(counts)
        start = before = 0
        while start < len(values):
            stop = max(start + 1, int(np.searchsorted(ends, before + _MOST_PAIRS, "right")))
            some = counts[start:stop]
            rows = np.repeat(np.arange(start, stop), some)
            shifts = firsts[start:stop] - (ends[start:stop] - some - before)
            places = positions[np.arange(len(rows)) + np.repeat(shifts, some)]
            near = self.close(values[rows], self._values[places])
            yield rows[near], places[near].astype(np.int64)
            start, before = stop, int(ends[stop - 1])

    def pairs(self, some: Any, others: Any) -> tuple[Any, Any]:
        """Return the numbers of near hashes of two arrays, in pairs."""
        near = self.close(some[:, None], others[None, :]).ravel()
        return self._np.divmod(self._np.flatnonzero(near), len(others))

    def close(self, some: Any, others: Any) -> Any:
        """Return which hashes of two arrays are near."""
        return self._np.bitwise_count(some ^ others) <= self._distance


def masks_for(distance: int, count: int, max_bytes: int) -> list[int]:
    """Return the bits by which hashes are sorted; nothing to compare all is fastest.

    Two hashes within the distance agree in the bits of one mask at least.
    """
    best, fewest = [], _COMPARE * count
    for blocks in range(distance + 1, _MOST_BLOCKS + 1):
        lists, bits = comb(blocks, distance), _BITS * (blocks - distance) // blocks
        cost = lists * (_SEARCH + _CANDIDATE * count / 2**bits)
        fits = lists <= _MOST_LISTS and lists * count * _SORTED_BYTES <= max_bytes
        if fits and cost < fewest:
            best, fewest = _choices(blocks, blocks - distance), cost
    return best


def _choices(blocks: int, agreeing: int) -> list[int]:
    cuts = [_BITS * number // blocks for number in range(blocks + 1)]
    masks = [(1 << end) - (1 << start) for start, end in pairwise(cuts)]
    return [sum(some) for some in combinations(masks, agreeing)]


def nearest_kept(hashes: Any, distance: int, max_bytes: int) -> Any:
    """Return for each of distinct hashes the number of the first kept one that is near.

    A hash is kept, and has its own number, if none of the kept ones before it is near.
    """
    import numpy as np

    owners = np.arange(len(hashes))
    kept = np.zeros(len(hashes), np.int64)  # numbers of the kept ones
    known, count = NearHashes(distance, len(hashes), max_bytes), 0
    for start in range(0, len(hashes), _ROWS):
        block = hashes[start : start + _ROWS]
        nearest = np.full(len(block), len(hashes))
        for rows, places in known.near(block):
            np.minimum.at(nearest, rows, kept[places])
        inside: list[int] = []
        for row in np.flatnonzero(nearest == len(hashes)).tolist():
            before = np.flatnonzero(known.close(block[inside], block[row]))
            if len(before):
                nearest[row] = start + inside[before[0]]
            else:
                nearest[row] = start + row
                inside.append(row)
        owners[start : start + len(block)] = nearest
        kept[count : count + len(inside)] = np.array(inside, np.int64) + start
        known.add(block[inside])
        count += len(inside)
    return owners


def first_connected(hashes: Any, distance: int, max_bytes: int) -> Any:
    """Return for each of distinct hashes the number of the first of those it is connected with.

    Hashes are connected if they are near, or both connected with a third one.
    """
    import numpy as np

    firsts = np.arange(len(hashes))
    known = NearHashes(distance, len(hashes), max_bytes)
    for start in range(0, len(hashes), _ROWS):
        block = hashes[start : start + _ROWS]
        for rows, places in known.near(block):
            _connect(firsts, rows + start, places)
        rows, places = known.pairs(block, block)
        _connect(firsts, rows + start, places + start)
        known.add(block)
    while (again := firsts[firsts] != firsts).any():
        firsts[again] = firsts[firsts[again]]
    return firsts


def _connect(firsts: Any, some: Any, others: Any) -> None:
    """Note that hashes are connected, in pairs of numbers."""
    import numpy as np

    pairs = np.unique(np.stack([firsts[some], firsts[others]], axis=1), axis=0)
    for left, other in pairs.tolist():
        first, second = sorted((_root(firsts, left), _root(firsts, other)))
        firsts[second] = first


def _root(firsts: Any, number: int) -> int:
    while firsts[number] != number:
        firsts[number] = firsts[firsts[number]]
        number = int(firsts[number])
    return number
