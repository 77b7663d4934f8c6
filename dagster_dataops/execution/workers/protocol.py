"""Messages between the parent process and its worker processes, as bytes.

Parent to worker: the operator, ranges of the input, and "stop". Worker to parent: "ready", settled
spans (without their output, which lies in a segment), finished ranges, failures, and "idle".
"""

import math
import struct
from enum import IntEnum
from typing import Final, NamedTuple

import orjson

from dagster_dataops.checkpoints.journal.span import COLUMN_TYPES, Span
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes
from dagster_dataops.errors import OperatorOpenError
from dagster_dataops.execution.records.record_failures import Failure


class Mode(IntEnum):
    """How a worker processes a range.

    Attributes:
        NORMAL: In spans of many records.
        CAREFUL: In spans of one record, because a worker died in this range.
        ALONE: A single record that may have killed its worker twice.
    """

    NORMAL = 0
    CAREFUL = 1
    ALONE = 2


class Range(NamedTuple):
    """An order to process the lines in bytes [start, end) of the input.

    Attributes:
        start: Byte position of the first line.
        end: Byte position after the last line.
        mode: How to process them.
        patience: Seconds after which the worker returns the lines that it has not begun.
    """

    start: int
    end: int
    mode: Mode = Mode.NORMAL
    patience: float = math.inf


class Kind(IntEnum):
    """First byte of a worker's message."""

    READY = 0
    SPAN = 1  # a span is settled in the worker's segment
    DONE = 2  # a range is finished and settled
    FAILED = 3  # the failure that ends the run
    FAULT = 4  # the disk refuses
    UNABLE = 5  # the operator cannot be loaded
    SHORTENED = 6  # the current range takes too long: its rest is returned
    STALE = 7  # the file of an imported module has changed
    IDLE = 8  # the run is forgotten; the worker can serve another one
    LAST_FAILED = 9  # the records that failed last, without a later success
    STOPPED = 10  # the operator stops the run
    UNOPENED = 11  # the operator cannot be opened


_RANGE: Final = struct.Struct("<QQBd")
_SPAN: Final = struct.Struct(f"<{''.join(COLUMN_TYPES)}")
_POSITION: Final = struct.Struct("<BQ")
_DONE: Final = struct.Struct("<Bd")
_SENT: Final = Failure._fields.index("disposition")  # it is of no use where the run ends
STOP: Final = b""


def pack_range(order: Range) -> bytes:
    """Return the message that orders a range."""
    return _RANGE.pack(*order)


def unpack_range(message: bytes) -> Range:
    """Return the range that a message orders."""
    start, end, mode, patience = _RANGE.unpack(message)
    return Range(start, end, Mode(mode), patience)


def pack_span(offset: int, span: Span, notes: SpanNotes | None = None) -> bytes:
    """Return the message for a settled span whose output lies at ``offset`` of the segment."""
    packed = b"" if notes is None else notes.pack()
    return _POSITION.pack(Kind.SPAN, offset) + _SPAN.pack(*span) + packed


def unpack_span(message: bytes) -> tuple[int, Span, SpanNotes | None]:
    """Return offset, span and notes of a message."""
    _, offset = _POSITION.unpack_from(message)
    at = _POSITION.size + _SPAN.size
    notes = SpanNotes.unpack(message, at)[0] if len(message) > at else None
    return offset, Span(*_SPAN.unpack_from(message, _POSITION.size)), notes


def pack_done(seconds: float) -> bytes:
    """Return the message that the current range is finished, and the time that it took."""
    return _DONE.pack(Kind.DONE, seconds)


def unpack_done(message: bytes) -> float:
    """Return the seconds that a range took."""
    return float(_DONE.unpack(message)[1])


def pack_shortened(end: int) -> bytes:
    """Return the message that the current range ends at byte ``end``."""
    return _POSITION.pack(Kind.SHORTENED, end)


def unpack_shortened(message: bytes) -> int:
    """Return the byte at which the current range ends."""
    return int(_POSITION.unpack(message)[1])


def pack_failed(failure: Failure) -> bytes:
    """Return the message for the failure that ends the run."""
    return bytes([Kind.FAILED]) + orjson.dumps(failure._replace(error=None)[:_SENT])


def unpack_failed(message: bytes) -> Failure:
    """Return the failure of a message, without its exception."""
    return Failure(*orjson.loads(message[1:]))


def pack_last_failed(starts: list[int]) -> bytes:
    """Return the message with the byte positions of the records that failed last."""
    return bytes([Kind.LAST_FAILED]) + orjson.dumps(starts)


def unpack_last_failed(message: bytes) -> list[int]:
    """Return the byte positions of the records that failed last."""
    starts: list[int] = orjson.loads(message[1:])
    return starts


def pack_unopened(error: OperatorOpenError) -> bytes:
    """Return the message that the operator cannot be opened."""
    return bytes([Kind.UNOPENED]) + orjson.dumps(error.args)


def unpack_unopened(message: bytes) -> OperatorOpenError:
    """Return the error of a message."""
    return OperatorOpenError(*orjson.loads(message[1:]))


def pack_fault(text: str, kind: Kind = Kind.FAULT) -> bytes:
    """Return the message for a fault that ends the worker."""
    return bytes([kind]) + text.encode(errors="backslashreplace")


def unpack_fault(message: bytes) -> str:
    """Return the text of a fault."""
    return message[1:].decode()
