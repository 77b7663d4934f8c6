"""What the parent and its worker processes say to one another, as bytes.

Parent to worker: ranges of the input, and "stop". Worker to parent: "ready", settled spans (never
their output, which lies in the worker's segment), finished ranges, and failures.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

import orjson

from dagster_dataops.checkpoints.spans import Span
from dagster_dataops.execution.settling import Failed, Failure


class Mode(IntEnum):
    """How a worker is to go through a range.

    Attributes:
        NORMAL: Many records a span.
        CAREFUL: One record a span: a worker died in this range.
        ALONE: One record, suspected of having killed its worker twice.
    """

    NORMAL = 0
    CAREFUL = 1
    ALONE = 2


class Range(NamedTuple):
    """Lines in bytes [start, end) of the input."""

    start: int
    end: int
    mode: Mode = Mode.NORMAL


class Kind(IntEnum):
    """First byte of what a worker says."""

    READY = 0
    SPAN = 1
    DONE = 2
    FAILED = 3
    FAULT = 4


_RANGE: Final = struct.Struct("<QQB")
_SPAN: Final = struct.Struct("<BQQ8I")
_DONE: Final = struct.Struct("<Bd")
STOP: Final = b""


def pack_range(given: Range) -> bytes:
    """Return a range as a message."""
    return _RANGE.pack(*given)


def unpack_range(message: bytes) -> Range:
    """Return the range of a message."""
    start, end, mode = _RANGE.unpack(message)
    return Range(start, end, Mode(mode))


def pack_span(offset: int, span: Span) -> bytes:
    """Return a settled span, whose output lies at ``offset`` of the worker's segment."""
    return _SPAN.pack(Kind.SPAN, offset, *span)


def unpack_span(message: bytes) -> tuple[int, Span]:
    """Return the offset and the span of a message."""
    _, offset, *fields = _SPAN.unpack(message)
    return offset, Span(*fields)


def pack_done(seconds: float) -> bytes:
    """Return that a range is done, and how long it took."""
    return _DONE.pack(Kind.DONE, seconds)


def unpack_done(message: bytes) -> float:
    """Return how long the range took, in seconds."""
    return float(_DONE.unpack(message)[1])


def pack_failed(failed: Failed) -> bytes:
    """Return the failure that ends the run."""
    failure = failed.failure
    text = [failed.offset, failure.exception, failure.message, failure.traceback_text]
    return bytes([Kind.FAILED]) + orjson.dumps(text)


def unpack_failed(message: bytes) -> Failed:
    """Return the failure of a message, without its line."""
    offset, exception, text, traceback_text = orjson.loads(message[1:])
    return Failed(offset, b"", Failure(exception, text, traceback_text))


def pack_fault(text: str) -> bytes:
    """Return what makes the worker unable to go on."""
    return bytes([Kind.FAULT]) + text.encode(errors="backslashreplace")


def unpack_fault(message: bytes) -> str:
    """Return the text of a fault."""
    return message[1:].decode()
