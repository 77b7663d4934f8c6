"""`RecordChange`: what an outcome depends on, and what the operator changed in its record.

An outcome is used again for another record whose columns that count are the same. Values that the
operator passed on are then those of the other record: its change is applied to that record, and
gives the bytes that a call would give.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.operators.outcomes.record_context import HIDDEN
from dagster_dataops.records import Record, encode

_COUNT: Final = f"{HIDDEN}change "
_MOST_KNOWN: Final = 4096


class ReadRule(NamedTuple):
    """What of a record an outcome depends on.

    Attributes:
        values: The columns whose value counts, or that there is none; sorted.
        presence: The columns of which counts alone whether they are there; sorted.
    """

    values: tuple[str, ...]
    presence: tuple[str, ...] = ()

    def digest(self, record: Record) -> bytes:
        """Return the digest of the columns of a record that count, 16 bytes."""
        parts = [[name, record[name]] if name in record else [name] for name in self.values]
        there = [[name, name in record] for name in self.presence]
        return xxhash.xxh3_128_digest(orjson.dumps(["columns", parts, there]))


class LineChange(NamedTuple):
    """How a result line follows from the record.

    Attributes:
        written: Columns of the record, in their places, whose value is that of the line.
        last: Columns after all others, in this order, with the values of the line.
        removed: Columns of the record that the line lacks.
    """

    written: tuple[str, ...]
    last: tuple[str, ...]
    removed: tuple[str, ...]

    def apply(self, record: Record, line: bytes) -> bytes:
        """Return the line for another record, from the line for the record that it was made of."""
        stored = orjson.loads(line)
        left_out = {*self.last, *self.removed}
        changed = {name: value for name, value in record.items() if name not in left_out}
        changed.update((name, stored[name]) for name in (*self.written, *self.last))
        return encode(changed)


class RecordChange(NamedTuple):
    """What an outcome depends on, and how its result lines follow from the record.

    Attributes:
        rule: What of the record it depends on.
        lines: For each result line its change; ``None`` if it is the same for all records.
    """

    rule: ReadRule
    lines: tuple[LineChange | None, ...]

    def as_count(self) -> str:
        """Return the name of the hidden count that holds it in the notes of a span."""
        fields = [*self.rule, [None if line is None else tuple(line) for line in self.lines]]
        return _COUNT + orjson.dumps(fields).decode().replace("/", "\\u002f")

    @classmethod
    def of_counts(cls, counts: Mapping[str, float]) -> "RecordChange | None":
        """Return the change in the notes of a span; ``None`` if the whole record counts."""
        names = [name for name in counts if name.startswith(_COUNT)]
        return _parsed(names[0]) if len(names) == 1 else None

    def apply(self, record: Record, output: bytes) -> bytes:
        """Return the result lines for another record with the same digest.

        Args:
            record: The other record.
            output: The stored result lines.
        """
        lines = zip(output.splitlines(keepends=True), self.lines, strict=True)
        return b"".join(
            line if change is None else change.apply(record, line) for line, change in lines
        )


@lru_cache(_MOST_KNOWN)
def _parsed(name: str) -> RecordChange | None:
    """Return the change in the name of a count; ``None`` if it is in no form that is known."""
    try:
        values, presence, lines = orjson.loads(name.removeprefix(_COUNT))
        changes = [None if one is None else LineChange(*map(tuple, one)) for one in lines]
        return RecordChange(ReadRule(tuple(values), tuple(presence)), tuple(changes))
    except (ValueError, TypeError):
        return None


def change_of(values: Sequence[str], lines: Sequence[LineChange | None]) -> RecordChange:
    """Return the change of an outcome.

    Args:
        values: The columns whose values count.
        lines: The changes of its lines. Of the columns that they write or remove counts whether
            the record has them.
    """
    counted = set(values)
    touched = {name for line in lines if line is not None for part in line for name in part}
    rule = ReadRule(tuple(sorted(counted)), tuple(sorted(touched - counted)))
    return RecordChange(rule, tuple(lines))
