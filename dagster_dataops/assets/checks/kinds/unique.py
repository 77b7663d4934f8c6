"""The check ``unique``."""

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress, count, islice
from operator import not_
from pathlib import Path
from typing import IO, Final

import orjson
import xxhash

from dagster_dataops.assets.checks.declared_check import (
    DeclaredCheck,
    check_columns,
    check_kind,
    columns_schema,
    declared,
    listed,
    name_of,
)
from dagster_dataops.assets.checks.findings import EXAMPLES, Finding, Violations
from dagster_dataops.assets.checks.inspectors import (
    Inspected,
    RecordInspector,
    finding_of,
)
from dagster_dataops.assets.checks.severity import Severity
from dagster_dataops.datasets.lines import iterate_lines, opened_content
from dagster_dataops.foundation.override import override
from dagster_dataops.records import Record, decode

_DIGEST_BYTES: Final = 16
_IN_MEMORY: Final = 32 << 20  # bytes of digests before they go to a file: two million digests
_SORT_BYTES: Final = 64 << 20  # memory for finding equal digests
_READ_BYTES: Final = _DIGEST_BYTES << 12


@check_kind(columns_schema("Columns whose values together differ in all records.", "id"))
def unique(
    *columns: str, name: str = "", severity: Severity | None = None, blocking: bool = False
) -> DeclaredCheck:
    """Check that no two records have the same values in ``columns``.

    A record in which one of them is missing or null equals no other record; see `no_nulls`. Digests
    of 128 bits are compared. They take 16 bytes per record, on disk beyond two million records, and
    at most about 100 MB of memory. A column that no record has fails the check.
    """
    check_columns("unique", columns)
    text = f"No two records have the same {listed(columns)}."
    name = name or name_of("unique", columns)
    return declared(name, text, lambda: _Duplicates(columns), severity, blocking=blocking)


class _Duplicates(RecordInspector):
    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._absent = set(columns)  # so far, in all records
        self._digests: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._digests.close)  # no finding after an error
        self._write = self._digests.write

    @override
    def see(self, start: int, record: Record) -> None:
        if self._absent:
            self._absent.difference_update(record)
        values = [record.get(column) for column in self._columns]
        if None in values:
            self.see_bad_line(start, "")
        else:
            self._write(xxhash.xxh3_128_digest(orjson.dumps(values)))

    @override
    def see_bad_line(self, start: int, problem: str) -> None:
        self._write(xxhash.xxh3_128_digest(b"at %d" % start))  # equals no other record

    @override
    def __call__(self, inspected: Inspected) -> Finding:
        if self._absent and inspected.rows:
            return _never_there(tuple(sorted(self._absent)), inspected)
        # Imported here, because it imports all operators of the library.
        from dagster_dataops.library.sorting.first_seen import first_of_equals

        with self._digests, tempfile.TemporaryDirectory(prefix="dataops-") as scratch:
            self._digests.seek(0)
            firsts = first_of_equals(_read(self._digests), Path(scratch), _SORT_BYTES)
            repeats = compress(count(), map(not_, firsts))
            shown = list(islice(repeats, EXAMPLES))
            further = sum(1 for _ in repeats)
        violations = Violations()
        for start, record in _records_at(inspected, shown):
            values = {column: record[column] for column in self._columns}
            value = values if len(values) > 1 else next(iter(values.values()))
            violations.add(start, "an earlier record has the same", value)
        violations.count += further
        return finding_of(violations, inspected, "repeat an earlier one")


def _never_there(columns: tuple[str, ...], inspected: Inspected) -> Finding:
    finding = finding_of(Violations(inspected.rows), inspected, f"lack {listed(columns)}")
    return replace(finding, text=f"{finding.text} No record has a value to compare.")


def _read(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(_READ_BYTES):
        for start in range(0, len(block), _DIGEST_BYTES):
            yield block[start : start + _DIGEST_BYTES]


def _records_at(inspected: Inspected, positions: Sequence[int]) -> Iterator[tuple[int, Record]]:
    """Yield the records at ascending ``positions``, counted from 0, each with its line's start."""
    with opened_content(inspected.dataset.location) as (source, interval):
        inspected.check_same(source)
        lines = iterate_lines(source, [interval])
        done = 0
        for position in positions:
            line = next(islice(lines, position - done, None))
            done = position + 1
            yield line.start, decode(line.text)
