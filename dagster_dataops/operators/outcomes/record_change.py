"""`RecordChange`: the columns on which an outcome depends, and the changes of the operator.

An outcome is used again for another record with equal values in these columns. The changes are
applied to that record, whose other columns are passed on, and give the bytes of a call.
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
    """The columns on which an outcome depends.

    Attributes:
        values: The columns whose value counts, or that it is missing; sorted.
        presence: The columns of which only the presence counts; sorted.
    """

    values: tuple[str, ...]
    presence: tuple[str, ...] = ()

    def digest(self, record: Record) -> bytes:
        """Return the digest of the columns that count in a record, 16 bytes."""
        parts = [[name, record[name]] if name in record else [name] for name in self.values]
        present = [[name, name in record] for name in self.presence]
        return xxhash.xxh3_128_digest(orjson.dumps(["columns", parts, present]))


class LineChange(NamedTuple):
    """How a result line follows from the record.

    Attributes:
        written: Columns of the record, in their places, with the values of the line.
        last: Columns after all others, in this order, with the values of the line.
        removed: Columns of the record that are not in the line.
    """

    written: tuple[str, ...]
    last: tuple[str, ...]
    removed: tuple[str, ...]

    def apply(self, record: Record, line: bytes) -> bytes:
        """Return the line of another record, made from a stored line."""
        stored = orjson.loads(line)
        left_out = {*self.last, *self.removed}
        changed = {name: value for name, value in record.items() if name not in left_out}
        changed.update((name, stored[name]) for name in (*self.written, *self.last))
        return encode(changed)


class RecordChange(NamedTuple):
    """The columns on which an outcome depends, and how its result lines follow from the record.

    Attributes:
        rule: The columns.
        lines: The change for each result line; ``None`` if the line is the same for all records.
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
        """Return the result lines for another record with the same digest."""
        lines = zip(output.splitlines(keepends=True), self.lines, strict=True)
        return b"".join(
            line if change is None else change.apply(record, line) for line, change in lines
        )


@lru_cache(_MOST_KNOWN)
def _parsed(name: str) -> RecordChange | None:
    """Return the change in the name of a count; ``None`` if its form is not known."""
    try:
        values, presence, lines = orjson.loads(name.removeprefix(_COUNT))
        changes = [None if line is None else LineChange(*map(tuple, line)) for line in lines]
        return RecordChange(ReadRule(tuple(values), tuple(presence)), tuple(changes))
    except (ValueError, TypeError):
        return None


def change_of(values: Sequence[str], lines: Sequence[LineChange | None]) -> RecordChange:
    """Return the change of an outcome.

    Args:
        values: The columns whose values count.
        lines: The changes of its lines. The presence of the columns that they write or remove
            counts as well.
    """
    counted = set(values)
    touched = {name for line in lines if line is not None for part in line for name in part}
    rule = ReadRule(tuple(sorted(counted)), tuple(sorted(touched - counted)))
    return RecordChange(rule, tuple(lines))
