"""What the parent and its worker processes say to one another, as bytes.

Parent to worker: the operator, ranges of the input, where outputs belong, and "stop". Worker to
parent: "ready", settled spans (never their output, which lies in a segment), finished ranges,
failures, and "idle".
"""

import math
import struct
from enum import IntEnum
from typing import Final, NamedTuple

import orjson

from dagster_dataops.checkpoints.journal.span import COLUMN_TYPES, Span
from dagster_dataops.execution.records.record_failures import Failed, Failure


class Mode(IntEnum):
    """How a worker is to go through a range.

    Attributes:
        QUICK: Keep the output until its place in the result is known, which will be soon.
        NORMAL: Settle into the worker's own segment.
        CAREFUL: One record a span: a worker died in this range.
        ALONE: One record, suspected of having killed its worker twice.
    """

    QUICK = 0
    NORMAL = 1
    CAREFUL = 2
    ALONE = 3


class Range(NamedTuple):
    """Lines in bytes [start, end) of the input.

    Attributes:
        start: Where the first starts.
        end: Where the last ends.
        mode: How to go through them.
        patience: The seconds after which what is not begun is given back.
        place: Where in the main segment their output belongs, if that is known.
    """

    start: int
    end: int
    mode: Mode = Mode.NORMAL
    patience: float = math.inf
    place: int | None = None


class Place(NamedTuple):
    """Where the output of the range that starts at ``start`` belongs in the main segment."""

    start: int
    offset: int


class Done(NamedTuple):
    """That a range is done.

    Attributes:
        start: Where it starts.
        seconds: How long it took.
    """

    start: int
    seconds: float


class Kind(IntEnum):
    """First byte of what a worker says."""

    READY = 0
    SPAN = 1  # settled in its own segment
    DONE = 2  # a range is finished, and settled
    HELD = 3  # a range is finished; its output waits for its place
    PLACED = 4  # held output is in its place
    FAILED = 5
    FAULT = 6  # of the disk
    UNABLE = 7  # the operator cannot be loaded
    SHORTENED = 8  # the range under way takes too long: it ends sooner, the rest is for others
    SPAN_IN_PLACE = 9  # settled in the main segment
    STALE = 10  # a module's file has changed since it was imported there
    IDLE = 11  # the run is forgotten; another can be served
    LAST_FAILED = 12  # what failed, with nothing succeeding afterwards, before the worker ended


_RANGE: Final = struct.Struct("<QQBdq")
_NO_PLACE: Final = -1
_PLACE: Final = struct.Struct("<QQ")
_SPAN: Final = struct.Struct(f"<{''.join(COLUMN_TYPES)}")
_SETTLED: Final = struct.Struct("<BQ")
_DONE: Final = struct.Struct("<BQd")
STOP: Final = b""


def pack_order(order: Range | Place) -> bytes:
    """Return what a worker is to do as a message."""
    if isinstance(order, Place):
        return _PLACE.pack(*order)
    return _RANGE.pack(*order[:-1], _NO_PLACE if order.place is None else order.place)


def unpack_order(message: bytes) -> Range | Place:
    """Return what a message says is to be done."""
    if len(message) == _PLACE.size:
        return Place(*_PLACE.unpack(message))
    start, end, mode, patience, place = _RANGE.unpack(message)
    return Range(start, end, Mode(mode), patience, None if place == _NO_PLACE else place)


def pack_span(offset: int, span: Span, kind: Kind = Kind.SPAN) -> bytes:
    """Return a settled span, whose output lies at ``offset`` of the segment that ``kind`` says."""
    return _SETTLED.pack(kind, offset) + _SPAN.pack(*span)


def unpack_span(message: bytes) -> tuple[int, Span]:
    """Return the offset and the span of a message."""
    _, offset = _SETTLED.unpack_from(message)
    return offset, Span(*_SPAN.unpack_from(message, _SETTLED.size))


def pack_done(done: Done) -> bytes:
    """Return that a range is done, and settled."""
    return _DONE.pack(Kind.DONE, *done)


def pack_held(done: Done, spans: list[Span]) -> bytes:
    """Return the spans of a range that is done but not settled."""
    packed = b"".join([_SPAN.pack(*span) for span in spans])
    return _DONE.pack(Kind.HELD, *done) + packed


def unpack_done(message: bytes) -> tuple[Done, list[Span]]:
    """Return which range is done, and the spans of it that are held."""
    _, *done = _DONE.unpack_from(message)
    held = [Span(*fields) for fields in _SPAN.iter_unpack(message[_DONE.size :])]
    return Done(*done), held


def pack_placed(start: int) -> bytes:
    """Return that the output of the range that starts at ``start`` is in its place."""
    return _SETTLED.pack(Kind.PLACED, start)


def pack_shortened(end: int) -> bytes:
    """Return that the range under way ends at ``end``."""
    return _SETTLED.pack(Kind.SHORTENED, end)


def unpack_position(message: bytes) -> int:
    """Return the start of the range that is in its place, or the end of the one under way."""
    return int(_SETTLED.unpack(message)[1])


def pack_failed(failed: Failed) -> bytes:
    """Return the failure that ends the run."""
    failure = failed.failure
    text = [failed.offset, *failure._replace(error=None)]
    return bytes([Kind.FAILED]) + orjson.dumps(text)


def unpack_failed(message: bytes) -> Failed:
    """Return the failure of a message, without its line."""
    offset, *fields = orjson.loads(message[1:])
    return Failed(offset, b"", Failure(*fields))


def pack_last_failed(starts: list[int]) -> bytes:
    """Return where the records start that failed last."""
    return bytes([Kind.LAST_FAILED]) + orjson.dumps(starts)


def unpack_last_failed(message: bytes) -> list[int]:
    """Return where the records start that failed last."""
    starts: list[int] = orjson.loads(message[1:])
    return starts


def pack_fault(text: str, kind: Kind = Kind.FAULT) -> bytes:
    """Return what makes the worker unable to go on."""
    return bytes([kind]) + text.encode(errors="backslashreplace")


def unpack_fault(message: bytes) -> str:
    """Return the text of a fault."""
    return message[1:].decode()
