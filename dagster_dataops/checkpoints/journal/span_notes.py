"""SpanNotes: counters of an operator in a span, and the dispositions of its records.

Dispositions are held per record, so that a span can be divided and joined without loss.
"""

import struct
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import orjson

from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.outcomes.dispositions import (
    USUAL,
    Disposition,
    dropped_for,
    emitting,
)
from dagster_dataops.records import compact_copy

IntArray: TypeAlias = "array[int]"
Number: TypeAlias = "int | float"
Counts: TypeAlias = "dict[str, int | float]"

_HEAD: Final = struct.Struct("<III?")  # records, bytes of the JSON, bytes of the codes, compressed
_COMPRESS_FROM: Final = 64
_DROPPED: Final = b"\1" + bytes(255)  # whether a record was dropped, for its number of lines


class SpanNotes(NamedTuple):
    """The notes of one span.

    Attributes:
        records: Number of records of the span.
        counts: Sums of what the operator counted.
        table: The unusual dispositions.
        codes: For each record 0 for the usual disposition, n for the n-th of the table; empty if
            all are usual.
    """

    records: int
    counts: Counts
    table: tuple[Disposition, ...]
    codes: IntArray

    @classmethod
    def of(
        cls,
        records: int,
        unusual: Iterable[tuple[int, Disposition]],
        counts: Mapping[str, Number],
    ) -> "SpanNotes | None":
        """Return the notes of a span; ``None`` if there is nothing to note.

        Args:
            records: Number of records of the span.
            unusual: Position in the span and disposition of every unusual record.
            counts: Sums of what the operator counted.
        """
        dispositions = {
            position: disposition for position, disposition in unusual if disposition != USUAL
        }
        if not dispositions and not counts:
            return None
        numbers = {
            disposition: number
            for number, disposition in enumerate(dict.fromkeys(dispositions.values()), 1)
        }
        codes = _usual_codes(records, len(numbers))
        for position, disposition in dispositions.items():
            codes[position] = numbers[disposition]
        return cls(records, dict(counts), tuple(numbers), codes)

    @classmethod
    def of_emitted(cls, emitted: Sequence[int]) -> "SpanNotes | None":
        """Return the notes of records that became other numbers of lines without a reason.

        Args:
            emitted: The number of result lines of each record; bools will do.
        """
        if all(number == 1 for number in emitted):
            return None
        if max(emitted) <= 1:  # four times as fast
            codes = array("B", bytes(emitted).translate(_DROPPED))
            return cls(len(emitted), {}, (dropped_for(""),), codes)
        unusual = [(place, emitting(number)) for place, number in enumerate(emitted) if number != 1]
        return cls.of(len(emitted), unusual, {})

    def shared(self) -> "SpanNotes":
        """Return equal notes; of a single record one object for all records with equal notes."""
        if self.records != 1:
            return self
        counts = tuple((name, type(number), number) for name, number in self.counts.items())
        return _of_one_record(self.table, self.codes.tobytes(), counts)

    def unusual(self) -> Iterator[tuple[int, Disposition]]:
        """Yield position and disposition of every unusual record, in order."""
        return (
            (position, self.table[code - 1]) for position, code in enumerate(self.codes) if code
        )

    def tally(self) -> "Counter[Disposition]":
        """Return how many records have each disposition, the usual one included."""
        table = (USUAL, *self.table)
        return Counter({table[code]: number for code, number in Counter(self.codes).items()})

    def outputs(self) -> list[int]:
        """Return the index of the output of each result line, in order.

        Of an operator with named outputs: there, every record has an unusual disposition, except
        failed records, which have no line.
        """
        known = [[], *(orjson.loads(disposition).get("outputs", []) for disposition in self.table)]
        return list(chain.from_iterable(map(known.__getitem__, self.codes)))

    def part(self, first: int, last: int) -> "SpanNotes | None":
        """Return the notes of the records from position ``first`` to before ``last``.

        The counts stay with the whole span.
        """
        chosen = (
            (at - first, disposition) for at, disposition in self.unusual() if first <= at < last
        )
        return SpanNotes.of(last - first, chosen, {})

    def pack(self) -> bytes:
        """Return the notes as bytes, which know their own length."""
        table = [orjson.Fragment(disposition) for disposition in self.table]
        text = orjson.dumps({"counts": self.counts, "table": table})
        codes = self.codes.tobytes()
        pays = len(codes) >= _COMPRESS_FROM
        codes = zlib.compress(codes, 1) if pays else codes
        return _HEAD.pack(self.records, len(text), len(codes), pays) + text + codes

    def to_text(self) -> str:
        """Return the notes as text, for messages in JSON."""
        return self.pack().decode("latin-1")

    @classmethod
    def from_text(cls, text: str) -> "SpanNotes | None":
        """Return the notes of a text; ``None`` if it is empty."""
        return cls.unpack(text.encode("latin-1"))[0] if text else None

    @classmethod
    def unpack(cls, data: bytes, at: int = 0) -> "tuple[SpanNotes, int]":
        """Return the notes at byte ``at`` of ``data``, and the byte after them.

        Raises:
            ValueError: There are no notes.
        """
        try:
            records, size, length, compressed = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            noted, table = _content(data[at : at + size])
            packed = data[at + size : at + size + length]
            codes = _usual_codes(0, len(table))
            codes.frombytes(zlib.decompress(packed) if compressed else packed)
            counts = dict(noted)
        except (struct.error, zlib.error, KeyError, TypeError) as error:
            raise ValueError(str(error)) from None
        if len(codes) not in {0, records} or len(packed) != length:
            msg = f"{counted(len(codes), 'dispositions')} of {counted(records, 'records')}"
            raise ValueError(msg)
        return cls(records, counts, table, codes), at + size + length


@lru_cache(1024)  # spans of one record have few different ones
def _content(text: bytes) -> tuple[Mapping[str, Number], tuple[Disposition, ...]]:
    """Return the counts and the table in the JSON of notes."""
    content = orjson.loads(text)
    table = [
        orjson.dumps(disposition, option=orjson.OPT_SORT_KEYS) for disposition in content["table"]
    ]
    return content["counts"], tuple(map(_interned, table))


@lru_cache(4096)
def _of_one_record(
    table: tuple[Disposition, ...], codes: bytes, counts: tuple[tuple[str, type, Number], ...]
) -> SpanNotes:
    places = _usual_codes(0, len(table))
    places.frombytes(codes)
    numbers = {name: number for name, _, number in counts}
    return SpanNotes(1, numbers, table, places)


@lru_cache(4096)
def _interned(disposition: Disposition) -> Disposition:
    """Return one object for equal dispositions."""
    return compact_copy(disposition)


def _usual_codes(records: int, unusual: int) -> IntArray:
    """Return the codes of usual records, wide enough for a table of ``unusual`` dispositions."""
    kind = "B" if unusual < 256 else "I"
    return array(kind, bytes(records * array(kind).itemsize if unusual else 0))


def joined(
    parts: Sequence[tuple[int, SpanNotes | None]], counts: Mapping[str, Number]
) -> SpanNotes | None:
    """Return the notes of spans that are joined to one, in order.

    Args:
        parts: Number of records and notes of each span.
        counts: The sums of their counts.
    """
    tables = {notes.table for _, notes in parts if notes is not None and notes.table}
    if len(tables) == 1:  # the usual case: no disposition is touched
        (table,) = tables
        codes = _usual_codes(0, len(table))
        for records, notes in parts:
            codes.extend((notes and notes.codes) or _usual_codes(records, len(table)))
        return SpanNotes(len(codes), dict(counts), table, codes)
    unusual: list[tuple[int, Disposition]] = []
    before = 0
    for records, notes in parts:
        if notes is not None:
            unusual += [
                (before + position, disposition) for position, disposition in notes.unusual()
            ]
        before += records
    return SpanNotes.of(before, unusual, counts)


def add_counts(total: Counts, more: Mapping[str, Number]) -> None:
    """Add ``more`` to ``total``."""
    for name, number in more.items():
        total[name] = total.get(name, 0) + number
