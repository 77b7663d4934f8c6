"""``join.Merge``: join two datasets."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dagster_dataops.data import data_register
from dagster_dataops.library.join.join_operator import JoinOperator, key_digest
from dagster_dataops.library.sorting.external_sort import Entry, ExternalSort
from dagster_dataops.library.sorting.keyed_lines import KeyedLines
from dagster_dataops.library.sorting.keyed_parts import (
    Keyed,
    entries_of,
    packed_parts,
    partitions_of_input,
)
from dagster_dataops.library.sorting.spill_lists import BitArray
from dagster_dataops.operators.partitioning import Parts, Plan
from dagster_dataops.records import Record, decode_own, encode

join: Any = data_register.new_group("join")

_NO_KEY: Final = bytes(16)  # in place of the digest of a key
_NUMBER_BYTES: Final = 8
_OF_LEFT, _OF_RIGHT = b"\0", b"\1"


class Merge(JoinOperator, join):
    """Join the records of two inputs with equal keys.

    The first input is the left one, the second the right one. Reads ``on``, the key column of both,
    or several, and writes ``columns`` of the right input. ``right_on`` names those of the right
    input if they differ. ``1`` and ``1.0`` are equal keys, ``1``, ``"1"`` and ``true`` are not. A
    record whose key is missing or ``null`` matches nothing.

    ``how="left"`` keeps every left record; ``"inner"`` those with a match; ``"outer"`` every left
    record, then the right records without a match, in their order; ``"semi"`` left records with a
    match, and ``"anti"`` those without, both unchanged. ``duplicates`` says what happens if several
    right records have the key of a left one: ``"error"`` fails, ``"first"`` and ``"last"`` take
    one, ``"all"`` makes a record of each.

    The result has the columns of the left record, and those of the right one in ``columns``, by
    default all but its key. With ``columns`` a left record without a match gets ``null`` there. A
    column that the left record has, too, gets ``suffix``. The result is in the order of the left
    input.

    Joining uses up to ``max_memory_mb`` MB. A right input that takes up to half of that is held in
    memory, in one process. With a larger one, both inputs are sorted by key in files. From 64 MB of
    inputs on, the worker processes do that, as in `sample.Sort`.

    Args:
        how: Which records stay: ``left``, ``inner``, ``outer``, ``semi`` or ``anti``.
        max_memory_mb: Memory in MB before files are used.
    """

    new_records = True

    def forward_batch_input(
        self, left: Iterable[Record], right: Iterable[Record]
    ) -> Iterator[Record]:
        rows = ((key_digest(self._right, record), encode(record)) for record in right)
        held = KeyedLines()
        for key, line in rows:
            held.add(key, line)
            if held.size > self._max_bytes // 2:
                yield from self._by_files(left, chain(self._moved(held), rows))
                return
        yield from self._in_memory(left, held)

    def _in_memory(self, left: Iterable[Record], held: KeyedLines) -> Iterator[Record]:
        held.sort()
        matched = BitArray(held.end if self._how == "outer" else 0)
        for record in left:
            key = key_digest(self._left, record)
            places = [] if key is None else held.places(key)
            yield from self._joined(record, [decode_own(held.line(place)) for place in places])
            if self._how == "outer":
                for place in places:
                    matched.set(place)
        if self._how == "outer":
            yield from (decode_own(line) for place, line in held if not matched[place])

    def _moved(self, held: KeyedLines) -> Iterator[tuple[bytes | None, bytes]]:
        for _, line in held:
            yield key_digest(self._right, decode_own(line)), line
        held.clear()

    def _by_files(
        self, left: Iterable[Record], right: Iterable[tuple[bytes | None, bytes]]
    ) -> Iterator[Record]:
        with TemporaryDirectory(prefix="dataops-join-") as folder:
            by_left, by_right, joined = (
                ExternalSort(Path(folder), self._max_bytes // 3, name=name)
                for name in ("left", "right", "joined")
            )
            for key, line in right:
                by_right.add(key or _NO_KEY, line)
            for record in left:
                by_left.add(key_digest(self._left, record) or _NO_KEY, encode(record))
            self._join_sorted(iter(by_left), iter(by_right), joined)
            yield from map(_decoded, joined.data())

    def _join_sorted(
        self, by_left: Iterator[Entry], by_right: Iterator[Entry], joined: ExternalSort
    ) -> None:
        """Add the result to ``joined``, with keys for the order of the result.

        The message of an error has the place of its left record, so that the first one is raised.
        """

        def unmatched(row: Entry) -> None:
            if self._how == "outer":
                joined.add(_OF_RIGHT + row.number.to_bytes(8), row.data)

        matches = _Matches(by_right, unmatched)
        for key, number, line in by_left:
            lines = [] if key == _NO_KEY else matches.of(key)
            place = _OF_LEFT + number.to_bytes(8)
            try:
                for record in self._joined(decode_own(line), list(map(decode_own, lines))):
                    joined.add(place, encode(record))
            except ValueError as error:
                joined.add(place, str(error).replace("\n", " ").encode())
        matches.finish()

    def __dataops_regrouping__(self, sizes: Sequence[int]) -> "_MergeInPartitions | None":
        if len(sizes) < 2 or sizes[1] <= self._max_bytes // 2:  # the right input fits in memory
            return None
        return _MergeInPartitions(self._max_bytes, self._key_of, self._join_sorted)

    def _key_of(self, record: Record, at: int) -> bytes:
        return key_digest(self._right if at else self._left, record) or _NO_KEY


class _MergeInPartitions:
    """Joins in partitions of the digests of keys; a `Regrouping`.

    Args:
        max_bytes: The memory of all processes together.
        key_of: Returns the digest of the key of a record of an input.
        join: Joins the sorted entries of both inputs.
    """

    in_order = False

    def __init__(
        self,
        max_bytes: int,
        key_of: Callable[[Record, int], bytes],
        join: Callable[[Iterator[Entry], Iterator[Entry], ExternalSort], None],
    ) -> None:
        self.max_bytes, self._key_of, self._join = max_bytes, key_of, join

    def plan(self, size: int, memory: int, sampled: Callable[[], Iterator[Record]]) -> Plan:  # noqa: ARG002
        """Return the number of partitions."""
        return Plan(partitions_of_input(size, memory))

    def split(self, numbered: Iterator[tuple[int, Record]], at: int, plan: Plan) -> Parts:
        """Return the part of each partition."""
        return packed_parts(self._entries(numbered, at, plan.partitions), plan.partitions)

    def _entries(
        self, numbered: Iterator[tuple[int, Record]], at: int, partitions: int
    ) -> Iterator[tuple[int, Keyed]]:
        for number, record in numbered:
            key = self._key_of(record, at)
            yield key[0] * partitions >> 8, (key, number.to_bytes(_NUMBER_BYTES) + encode(record))

    def work(
        self, parts: Sequence[Parts], scratch: Path, memory: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the lines of the result, with keys for their order."""
        by_left, by_right, joined = (
            ExternalSort(scratch, memory // 3, name=name) for name in ("left", "right", "joined")
        )
        for entries, part in ((by_left, parts[0]), (by_right, parts[1])):
            for key, data in entries_of(part):
                entries.add(key, data)
        self._join(_numbered(by_left), _numbered(by_right), joined)
        for entry in joined:
            yield entry.key, entry.data


def _decoded(data: bytes) -> Record:
    """Return the record of a line; data that is no line is the message of an error."""
    if not data.endswith(b"\n"):
        raise ValueError(data.decode())
    return decode_own(data)


def _numbered(entries: ExternalSort) -> Iterator[Entry]:
    """Yield entries with the numbers in their data."""
    for key, _, data in entries:
        yield Entry(key, int.from_bytes(data[:_NUMBER_BYTES]), data[_NUMBER_BYTES:])


class _Matches:
    """Finds the rows of the right side for keys in rising order; the rows are sorted by key.

    ``unmatched`` takes each row that was passed and not found.
    """

    def __init__(self, rows: Iterator[Entry], unmatched: Callable[[Entry], None]) -> None:
        self._rows, self._unmatched = rows, unmatched
        self._next: Entry | None = next(rows, None)
        self._key: bytes = _NO_KEY
        self._lines: list[bytes] = []

    def of(self, key: bytes) -> list[bytes]:
        """Return the rows with this key, which is not less than the one before."""
        if key == self._key:
            return self._lines
        self._key, self._lines = key, []
        while self._next is not None and self._next.key <= key:
            if self._next.key == key:
                self._lines.append(self._next.data)
            else:
                self._unmatched(self._next)
            self._next = next(self._rows, None)
        return self._lines

    def finish(self) -> None:
        """Give the rest of the rows to ``unmatched``."""
        while self._next is not None:
            self._unmatched(self._next)
            self._next = next(self._rows, None)
