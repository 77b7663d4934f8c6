"""``join.Merge``: join two datasets."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.library.join.join_operator import JoinOperator, key_digest
from dagster_dataops.library.sorting.external_sort import Entry, ExternalSort
from dagster_dataops.records import Record, decode, encode

join: Any = data_register.new_group("join")

ROW_BYTES: Final = 200  # of a held row, besides its line
_NO_KEY: Final = b""


class Merge(JoinOperator, join):
    """Join the records of two inputs with equal keys.

    The first input is the left one, the second the right one. Reads ``on``, the key column of both,
    or several, and writes ``columns`` of the right input. ``right_on`` names those of the right
    input if they differ. ``1`` and ``1.0`` are equal keys, ``1``, ``"1"`` and ``true`` are not. A
    record whose key is missing or ``null`` matches nothing.

    ``how="left"`` keeps every left record; ``"inner"`` those with a match; ``"outer"`` every left
    record, then the right records without a match; ``"semi"`` left records with a match, and
    ``"anti"`` those without, both unchanged. ``duplicates`` says what happens if several right
    records have the key of a left one: ``"error"`` fails, ``"first"`` and ``"last"`` take one,
    ``"all"`` makes a record of each.

    The result has the columns of the left record, and those of the right one in ``columns``, by
    default all but its key. With ``columns`` a left record without a match gets ``null`` there. A
    column that the left record has, too, gets ``suffix``. The result is in the order of the left
    input.

    Joining runs in one process, from the start after a kill. The right input is held in memory up
    to ``max_memory_mb`` MB; if it is larger, both inputs are sorted in files in the folder for
    temporary files.

    Args:
        how: Which records stay: ``left``, ``inner``, ``outer``, ``semi`` or ``anti``.
        max_memory_mb: Memory in MB before files are used.
    """

    new_records = True

    def forward_batch_input(
        self, left: Iterable[Record], right: Iterable[Record]
    ) -> Iterator[Record]:
        rows = ((key_digest(self._right, record) or _NO_KEY, encode(record)) for record in right)
        held: dict[bytes, list[bytes]] = {}
        size = 0
        for key, line in rows:
            held.setdefault(key, []).append(line)
            size += ROW_BYTES + len(line)
            if size > self._max_bytes:
                first = ((known, one) for known, lines in held.items() for one in lines)
                yield from self._by_files(left, chain(first, rows))
                return
        yield from self._in_memory(left, held)

    def _in_memory(
        self, left: Iterable[Record], held: dict[bytes, list[bytes]]
    ) -> Iterator[Record]:
        matched: set[bytes] = set()
        for record in left:
            key = key_digest(self._left, record)
            found = [] if key is None else held.get(key, [])
            if found and key is not None:
                matched.add(key)
            yield from self._joined(record, list(map(decode, found)))
        if self._how == "outer":
            rest = (lines for key, lines in held.items() if key not in matched)
            yield from map(decode, chain.from_iterable(rest))

    def _by_files(
        self, left: Iterable[Record], right: Iterable[tuple[bytes, bytes]]
    ) -> Iterator[Record]:
        with TemporaryDirectory(prefix="dataops-join-") as folder:
            by_left, by_right, joined = (
                ExternalSort(Path(folder), self._max_bytes // 3, name=name)
                for name in ("left", "right", "joined")
            )
            for key, line in right:
                by_right.add((key,), line)
            for record in left:
                by_left.add((key_digest(self._left, record) or _NO_KEY,), encode(record))
            self._join_sorted(by_left, by_right, joined)
            for _, _, line in joined:
                yield decode(line)

    def _join_sorted(
        self, by_left: ExternalSort, by_right: ExternalSort, joined: ExternalSort
    ) -> None:
        """Add the result to ``joined``, with keys for the order of the result."""
        outer = self._how == "outer"
        matches = _Matches(
            iter(by_right), lambda number, line: joined.add((1, number), line) if outer else None
        )
        for (key,), number, line in by_left:
            found = [] if key == _NO_KEY else matches.of(key)
            for one in self._joined(decode(line), list(map(decode, found))):
                joined.add((0, number), encode(one))
        matches.finish()


class _Matches:
    """Finds the rows of the right side for keys in rising order; the rows are sorted by key.

    ``unmatched`` takes number and line of each row that was passed and not found.
    """

    def __init__(self, rows: Iterator[Entry], unmatched: Callable[[int, bytes], None]) -> None:
        self._rows, self._unmatched = rows, unmatched
        self._next: Entry | None = next(rows, None)
        self._key: bytes = _NO_KEY
        self._found: list[bytes] = []

    def of(self, key: bytes) -> list[bytes]:
        """Return the rows with this key, which is not less than the one before."""
        if key == self._key:
            return self._found
        self._key, self._found = key, []
        while self._next is not None and self._next[0][0] <= key:
            (own,), number, line = self._next
            if own == key:
                self._found.append(line)
            else:
                self._unmatched(number, line)
            self._next = next(self._rows, None)
        return self._found

    def finish(self) -> None:
        """Give the rest of the rows to ``unmatched``."""
        while self._next is not None:
            self._unmatched(*self._next[1:])
            self._next = next(self._rows, None)
