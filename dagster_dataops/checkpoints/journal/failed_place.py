"""FailedPlace: where in its span a record failed, as the error lines of segments say it."""

from typing import Any, NamedTuple

import orjson


class FailedPlace(NamedTuple):
    """Where a record failed: what is needed to put its result there, should it have one later.

    Attributes:
        offset: Byte position of its line in the input.
        length: Bytes of the line, without its newline.
        position: How many records of the span come before it.
        output: How many bytes of the span's result lines come before it.
        dropped: How many of the records before it emitted nothing and did not fail.
    """

    offset: int
    length: int
    position: int = 0
    output: int = 0
    dropped: int = 0


class FailedRecord(NamedTuple):
    """An error line: where the record failed, and what the error file tells of it."""

    place: FailedPlace
    told: dict[str, Any]

    def line(self) -> bytes:
        """Return it as it stands in a segment."""
        return orjson.dumps({**self.place._asdict(), **self.told}, option=orjson.OPT_APPEND_NEWLINE)


def failed_records(lines: bytes) -> list[FailedRecord]:
    """Return what the error lines of a span say, in input order."""
    return [_failed_record(orjson.loads(line)) for line in lines.splitlines()]


def _failed_record(told: dict[str, Any]) -> FailedRecord:
    return FailedRecord(FailedPlace(*map(told.pop, FailedPlace._fields)), told)
