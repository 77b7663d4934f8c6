"""Messages between the parent process and its worker processes, as bytes.

The parent sends the operator, ranges of the input, and `STOP`. A worker sends messages of a `Kind`.
The output of a span is in a segment, and is not sent.
"""

import math
import struct
from enum import IntEnum
from typing import Any, Final, NamedTuple

import orjson


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
    """First byte of a worker's message, before its values.

    Attributes:
        READY: The worker is ready.
        SPAN: A span is settled: its offset in the worker's segment, its notes as text, and the
            fields of `Span`.
        DONE: A range is finished and settled: the seconds that it took.
        FAILED: A record ends the run: the fields of `Failure` without the exception and the
            disposition.
        FAULT: The disk refuses: the text of the error.
        UNABLE: The operator cannot be loaded: the text of the error.
        SHORTENED: The current range takes too long: the byte at which it ends now.
        STALE: The file of an imported module has changed.
        IDLE: The run is forgotten; the worker can serve another one.
        LAST_FAILED: Byte positions of the records that failed last, without a later success.
        STOPPED: The operator stops the run: the reason.
        UNOPENED: The operator cannot be opened: the values of the `OperatorOpenError`.
        UNFIT: The operator has damaged the process, which ends: how.
        LEAVING: The worker ends and begins none of the ranges that it still has.
    """

    READY = 0
    SPAN = 1
    DONE = 2
    FAILED = 3
    FAULT = 4
    UNABLE = 5
    SHORTENED = 6
    STALE = 7
    IDLE = 8
    LAST_FAILED = 9
    STOPPED = 10
    UNOPENED = 11
    UNFIT = 12
    LEAVING = 13


_RANGE: Final = struct.Struct("<QQBd")
STOP: Final = b""


def pack_range(order: Range) -> bytes:
    """Return the message that orders a range."""
    return _RANGE.pack(*order)


def unpack_range(message: bytes) -> Range:
    """Return the range that a message orders."""
    start, end, mode, patience = _RANGE.unpack(message)
    return Range(start, end, Mode(mode), patience)


def pack(kind: Kind, *values: object) -> bytes:
    """Return a worker's message: its kind, and values that JSON can hold."""
    return bytes([kind]) + orjson.dumps(values)


def pack_fault(text: str, kind: Kind = Kind.FAULT) -> bytes:
    """Return the message for a fault that ends the worker."""
    return pack(kind, text.encode(errors="backslashreplace").decode())


def unpack(message: bytes) -> list[Any]:
    """Return the values of a worker's message."""
    values: list[Any] = orjson.loads(message[1:])
    return values
