"""FailedPlace: the place of a failed record in its span. FailedRecord: its error line."""

from typing import Any, NamedTuple

import orjson


class FailedPlace(NamedTuple):
    """The place of a failed record, at which a retry inserts the new result.

    Attributes:
        offset: Byte position of its line in the input.
        length: Bytes of the line, without its newline.
        position: Number of records of the span before it.
        output: Number of bytes of the result lines of the span before it.
        dropped: Number of records of the span before it that emitted nothing and did not fail.
    """

    offset: int
    length: int
    position: int = 0
    output: int = 0
    dropped: int = 0


class FailedRecord(NamedTuple):
    """An error line: the place of the record, and its fields in the error file."""

    place: FailedPlace
    row: dict[str, Any]

    def line(self) -> bytes:
        """Return the error line in the form stored in a segment."""
        return orjson.dumps({**self.place._asdict(), **self.row}, option=orjson.OPT_APPEND_NEWLINE)


def failed_records(lines: bytes) -> list[FailedRecord]:
    """Return the failed records of a span from its error lines, in input order."""
    return [_failed_record(orjson.loads(line)) for line in lines.splitlines()]


def _failed_record(row: dict[str, Any]) -> FailedRecord:
    return FailedRecord(FailedPlace(*map(row.pop, FailedPlace._fields)), row)
