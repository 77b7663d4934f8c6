"""FailedRecord: a failed record of a span, and its error line."""

from typing import Any, NamedTuple

import orjson


class FailedRecord(NamedTuple):
    """A failed record, and the place in its span where a retry puts its result.

    Attributes:
        offset: Byte position of its line in the input.
        length: Bytes of the line, without its newline.
        position: Records of the span before it.
        output: Bytes of the result lines of the span before it.
        dropped: Records of the span before it that emitted nothing and did not fail.
        row: Its fields in the error file.
    """

    offset: int
    length: int
    position: int
    output: int
    dropped: int
    row: dict[str, Any]

    def line(self) -> bytes:
        """Return the error line as a segment holds it."""
        fields = self._asdict()
        row = fields.pop("row")
        return orjson.dumps(fields | row, option=orjson.OPT_APPEND_NEWLINE)


def failed_records(lines: bytes) -> list[FailedRecord]:
    """Return the failed records of a span from its error lines, in input order."""
    return [_failed_record(orjson.loads(line)) for line in lines.splitlines()]


def _failed_record(row: dict[str, Any]) -> FailedRecord:
    place: dict[str, int] = {name: row.pop(name) for name in FailedRecord._fields[:-1]}
    return FailedRecord(**place, row=row)
