"""Record maps: which result lines of a node were made of which records of its input.

Records and lines are counted from 0. A line of a node with named outputs is known by the index of
the output and its index there.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import accumulate, count, islice, repeat
from typing import Any, Final, NamedTuple

import orjson

from dagster_dataops.checkpoints.checkpoint import CheckpointContent
from dagster_dataops.checkpoints.folder.manifest import Manifest, NodeFolder
from dagster_dataops.datasets.durable_files import storage
from dagster_dataops.errors import TraceError
from dagster_dataops.foundation.places.bucket import Location
from dagster_dataops.foundation.quantities import counted
from dagster_dataops.operators.outcomes.dispositions import USUAL

MOST_LINES: Final = 1000  # lines of one record that are followed
_FEW: Final = 16  # dispositions that are counted one after another
_INDEX: Final = len(b'{"index":')


class MapEntry(NamedTuple):
    """Outcome of a record.

    Attributes:
        records: The record; of a batch that became any number of lines, all its records.
        lines: Index of the output and index of each line, the first thousand.
        fields: The disposition.
        left_out: Number of the other lines.
    """

    records: Sequence[int]
    lines: Sequence[tuple[int, int]]
    fields: dict[str, Any]
    left_out: int = 0


class LineMap:
    """The map of a node in which every record became one line."""

    def of_line(self, _output: int, line: int) -> MapEntry:
        """Return the entry of the record that a line was made of."""
        return self.of_record(line)

    def of_record(self, record: int) -> MapEntry:
        """Return the entry of a record."""
        return MapEntry((record,), ((0, record),), {})

    def outcomes(self) -> Iterator[bytes | None]:
        """Yield the disposition of each record, without end."""
        return repeat(USUAL)


class KeptMap:
    """The map in the kept journal of a node, and in its error file.

    Raises:
        TraceError: The journal or the error file is not the one that belongs to the result.
    """

    def __init__(self, folder: NodeFolder, manifest: Manifest) -> None:
        content = CheckpointContent.read(folder.path, folder.kept.name)
        table = content.table
        self._failed = failed_indices(folder, manifest)
        self._notes = table.notes
        self._last: tuple[int, list[bytes]] = (-1, [])  # the span that was looked at last
        self._starts = table.column("start")
        records = table.column("records")
        self._records = _sums(records)  # kept records before each span, and in the end all
        self._routed = bool(manifest.outputs)
        emitted = [array("Q", records) for _ in range(len(manifest.outputs) or 1)]
        for start, notes in table.notes.items():
            if notes.table:
                span = bisect_left(self._starts, start)
                for output, lines in enumerate(emitted):
                    numbers = _numbers(notes.table, output if self._routed else None)
                    lines[span] = _lines_in(notes.codes, numbers)
        self._lines = list(map(_sums, emitted))  # lines of each output before each span
        whole = content.result == manifest.fingerprint
        rows = sum(lines[-1] for lines in self._lines)
        if not whole or (self._records[-1], rows) != (
            manifest.rows_in - manifest.failed,
            manifest.rows_out,
        ):
            reason = (
                f"{folder.kept}, the map from records to result lines, is missing, damaged or of "
                "another run than the result; run the node again over all records"
            )
            raise TraceError(str(folder.path), reason)

    def of_line(self, output: int, line: int) -> MapEntry:
        """Return the entry of the record that a line was made of."""
        before = self._lines[output]
        span = bisect_right(before, line) - 1
        within = line - before[span]
        codes = self._codes(self._starts[span])
        if codes:
            within = bisect_right(list(accumulate(self._emitted_by(codes, output))), within)
        return self._entry(self._records[span] + within)

    def of_record(self, record: int) -> MapEntry:
        """Return the entry of a record."""
        failed = bisect_left(self._failed, record)
        if failed < len(self._failed) and self._failed[failed] == record:
            return MapEntry((record,), (), {"failed": True})
        return self._entry(record - failed)

    def outcomes(self) -> Iterator[bytes | None]:
        """Yield the disposition of each record, in order; ``None`` for one that failed."""
        failed = iter(self._failed)
        next_failed, record = next(failed, -1), 0
        for span, start in enumerate(self._starts):
            number = self._records[span + 1] - self._records[span]
            for code in self._codes(start) or repeat(USUAL, number):
                while record == next_failed:
                    yield None
                    next_failed, record = next(failed, -1), record + 1
                yield code
                record += 1
        while record == next_failed:
            yield None
            next_failed, record = next(failed, -1), record + 1

    def dropped(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each record that was dropped, in order, with its disposition."""
        for span, start in enumerate(self._starts):
            notes = self._notes.get(start)
            if notes is None or not notes.table:
                continue
            fields = [_fields(disposition) for disposition in (USUAL, *notes.table)]
            chosen = {
                code
                for code, entry in enumerate(fields)
                if not entry.get("emitted", 1) and "merged" not in entry
            }
            if chosen:
                for within, code in enumerate(notes.codes):
                    if code in chosen:
                        yield self._record(self._records[span] + within), fields[code]

    def _entry(self, kept: int) -> MapEntry:
        """Return the entry of the record before which ``kept`` records did not fail."""
        first, last = kept, kept + 1
        while first and "merged" in self._fields_at(first):
            first -= 1
        while last < self._records[-1] and "merged" in self._fields_at(last):
            last += 1
        fields = self._fields_at(first)
        lines = list(islice(self._lines_at(first, fields), MOST_LINES))
        number = len(fields.get("outputs", ())) if self._routed else fields.get("emitted", 1)
        records = tuple(map(self._record, range(first, last)))
        return MapEntry(records, lines, fields, number - len(lines))

    def _lines_at(self, kept: int, fields: dict[str, Any]) -> Iterator[tuple[int, int]]:
        """Yield the lines of a record, in the order in which they were emitted."""
        span = bisect_right(self._records, kept) - 1
        within = kept - self._records[span]
        codes = self._codes(self._starts[span])[:within]
        nexts = [
            count(lines[span] + (sum(self._emitted_by(codes, output)) if codes else within))
            for output, lines in enumerate(self._lines)
        ]
        outputs = fields.get("outputs", ()) if self._routed else [0] * fields.get("emitted", 1)
        return ((output, next(nexts[output])) for output in outputs)

    def _record(self, kept: int) -> int:
        """Return the index of a record from the number of records before it that did not fail."""
        record = kept
        while record != kept + (failed := bisect_right(self._failed, record)):
            record = kept + failed
        return record

    def _fields_at(self, kept: int) -> dict[str, Any]:
        span = bisect_right(self._records, kept) - 1
        codes = self._codes(self._starts[span])
        code = codes[kept - self._records[span]] if codes else USUAL
        return _fields(code)

    def _codes(self, start: int) -> list[bytes]:
        """Return the disposition of each record of a span; empty if all are usual."""
        if self._last[0] != start:
            notes = self._notes.get(start)
            codes: list[bytes] = []
            if notes is not None and notes.table:
                codes = list(map((USUAL, *notes.table).__getitem__, notes.codes))
            self._last = start, codes
        return self._last[1]

    def _emitted_by(self, codes: Sequence[bytes], output: int) -> Iterator[int]:
        """Yield the number of lines of each record in an output."""
        numbers = {
            code: lines_emitted(code, output if self._routed else None) for code in set(codes)
        }
        return map(numbers.__getitem__, codes)


def _sums(numbers: "array[int]") -> "array[int]":
    """Return the sums of the numbers before each one, and of all."""
    return array("Q", accumulate(numbers, initial=0))


@lru_cache(1024)
def _numbers(table: tuple[bytes, ...], output: int | None) -> list[int]:
    """Return the number of lines of a record by the code of its disposition."""
    return [lines_emitted(disposition, output) for disposition in (USUAL, *table)]


def _lines_in(codes: "array[int]", numbers: list[int]) -> int:
    """Return the number of lines of records; ``numbers`` has that for each code."""
    if codes.itemsize > 1 or len(numbers) > _FEW:
        return sum(map(numbers.__getitem__, codes))
    text = codes.tobytes()
    unusual = {code: text.count(code) for code in range(1, len(numbers))}  # fast: they are few
    usual = len(text) - sum(unusual.values())
    return usual * numbers[0] + sum(numbers[code] * number for code, number in unusual.items())


@cache
def _fields(disposition: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(disposition)
    return fields


def lines_emitted(disposition: bytes, output: int | None) -> int:
    """Return the number of result lines of a record.

    ``output`` is the index of a named output; ``None`` for a node with one result.
    """
    fields = _fields(disposition)
    if output is not None:
        number: int = fields.get("outputs", []).count(output)
        return number
    return int(fields.get("emitted", 1))


def failed_indices(folder: NodeFolder, manifest: Manifest) -> "array[int]":
    """Return the indices of the failed records of a node, in rising order.

    Raises:
        TraceError: They are not all in the error file, or it was edited.
    """
    indices = array("Q")
    if not manifest.failed:
        return indices
    if folder.errors.exists():
        with (
            storage(folder.errors, "read the failed records"),
            suppress(ValueError, OverflowError),  # a line that no run wrote
            folder.errors.open("rb") as file,
        ):
            indices.extend(int(line[_INDEX : line.find(b",")]) for line in file)
    if len(indices) != manifest.failed:
        reason = (
            f"{counted(manifest.failed, 'records')} failed, and {folder.errors} has "
            f"{len(indices):,} of them; run the node again"
        )
        raise TraceError(str(folder.path), reason)
    return indices


def find_error_row(
    folder: NodeFolder, index: int, path: Location | None = None
) -> dict[str, Any] | None:
    """Return the row of a failed record; ``None`` if it is not in the error file.

    ``path`` is the input of the record, if there are several.
    """
    start = b'{"index":%d,' % index
    with storage(folder.errors, "read the failed records"), folder.errors.open("rb") as file:
        for line in file:
            if line.startswith(start):
                row: dict[str, Any] = orjson.loads(line)
                if path is None or row.get("path") == str(path):
                    return row
    return None
