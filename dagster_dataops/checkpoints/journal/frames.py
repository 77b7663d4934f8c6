"""The journal: one append-only file that is the whole truth about an unfinished run.

It is a row of frames, each written by a single ``write``::

    magic "DOJ1" | kind, 1 byte | payload length, 4 bytes | checksum of kind and payload, 8 bytes
    payload

A crash can only cut the last frame short. Reading stops at nothing: a frame that fails its
checksum is passed over and the next magic looked for, so damage costs the spans it hit. The few
frames that everything hangs on are there twice.
"""

import os
import struct
from array import array
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.checkpoints.journal.span import Column, Span, pack, pack_one, unpack
from dagster_dataops.datasets.durable_files import storage, write_all

_MAGIC: Final = b"DOJ1"
_HEAD: Final = struct.Struct("<4sBIQ")
_PLACE: Final = struct.Struct("<IQI")
DIGEST: Final = 16  # bytes of the digest of a record's line


class FrameKind(IntEnum):
    """What a frame says."""

    ATTEMPT = 1  # JSON: which run, with which fingerprint, goes on from here
    SPANS = 2  # spans whose outputs lie one after the other in one segment
    COPY = 4  # kind and payload of the frame before, which count if that one is damaged
    POSITION = 6  # where a stream stood when all items before it were written
    STAGES = 7  # JSON: what the stream of those positions consists of
    DIGESTS = 8  # of the input of spans of one record each: those of the frame that follows
    REOPENED = 9  # where spans start that count no more, as records in them are to be tried again


class Frame(NamedTuple):
    """One frame that passed its checksum."""

    kind: int
    payload: bytes


class PackedSpans(NamedTuple):
    """The content of a spans frame; ``columns`` are `Span`'s fields."""

    segment: int
    offset: int
    columns: list[Column]


class PackedDigests(NamedTuple):
    """The content of a digests frame; segment and offset are those of its spans."""

    segment: int
    offset: int
    digests: list[bytes]


def frame(kind: FrameKind, payload: bytes) -> bytes:
    """Return one frame as bytes."""
    return _HEAD.pack(_MAGIC, kind, len(payload), _check(kind, payload)) + payload


def _check(kind: int, payload: bytes) -> int:
    return xxhash.xxh3_64_intdigest(payload, seed=kind)


def read_frames(data: bytes) -> Iterator[Frame]:
    """Yield every frame of ``data`` that is whole, passing over what is not."""
    before: Frame | None = None
    for found in _whole_frames(data):
        if found.kind != FrameKind.COPY:
            before = found
            yield found
        elif found.payload:
            copied = Frame(found.payload[0], found.payload[1:])
            if copied != before:
                yield copied
            before = None


def _whole_frames(data: bytes) -> Iterator[Frame]:
    at = data.find(_MAGIC)
    while 0 <= at <= len(data) - _HEAD.size:
        _, kind, length, check = _HEAD.unpack_from(data, at)
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if len(payload) == length and _check(kind, payload) == check:
            yield Frame(kind, payload)
            at = data.find(_MAGIC, at + _HEAD.size + length)
        else:
            at = data.find(_MAGIC, at + 1)


def spans_frame(
    segment: int, offset: int, columns: list[Column], digests: list[bytes] | None = None
) -> bytes:
    """Return the frame of spans, after that of the digests of their input if there are any.

    Args:
        segment: Where their outputs are.
        offset: Where in it the first of them begins.
        columns: Their fields.
        digests: One for each span.
    """
    return _spans_frame(_PLACE.pack(segment, offset, len(columns[0])), pack(columns), digests)


def span_frame(segment: int, offset: int, span: Span, digests: list[bytes] | None = None) -> bytes:
    """Return what `spans_frame` returns for the columns of one span."""
    return _spans_frame(_PLACE.pack(segment, offset, 1), pack_one(span), digests)


def _spans_frame(place: bytes, packed: bytes, digests: list[bytes] | None) -> bytes:
    spans = frame(FrameKind.SPANS, place + packed)
    return spans if digests is None else frame(FrameKind.DIGESTS, place + b"".join(digests)) + spans


def read_spans(payload: bytes) -> PackedSpans | None:
    """Return the spans of a frame, or ``None`` if they cannot be what was written."""
    try:
        segment, offset, count = _PLACE.unpack_from(payload)
        return PackedSpans(segment, offset, unpack(payload[_PLACE.size :], count))
    except (struct.error, ValueError):
        return None


def read_digests(payload: bytes) -> PackedDigests | None:
    """Return the digests of a frame, or ``None`` if they cannot be what was written."""
    try:
        segment, offset, count = _PLACE.unpack_from(payload)
    except struct.error:
        return None
    digests = [payload[at : at + DIGEST] for at in range(_PLACE.size, len(payload), DIGEST)]
    whole = len(payload) == _PLACE.size + count * DIGEST
    return PackedDigests(segment, offset, digests) if whole else None


def json_frame(kind: FrameKind, content: dict[str, Any]) -> bytes:
    """Return the frame of a JSON object, and its copy."""
    payload = orjson.dumps(content)
    return frame(kind, payload) + frame(FrameKind.COPY, bytes([kind]) + payload)


def reopened_frame(starts: list[int]) -> bytes:
    """Return the frame that takes back the spans before it that start at ``starts``."""
    return frame(FrameKind.REOPENED, array("Q", starts).tobytes())


def read_reopened(payload: bytes) -> list[int]:
    """Return where the spans start that a frame takes back; nothing if it cannot be read."""
    starts = array("Q")
    if len(payload) % starts.itemsize:
        return []
    starts.frombytes(payload)
    return starts.tolist()


class Journal:
    """Appends frames to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with storage(path, "open the journal"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(path, flags, 0o666)

    def append(self, data: bytes) -> None:
        """Append one frame; after a SIGKILL it is there, after a power loss only if synced."""
        with storage(self.path, "write"):
            before = os.lseek(self._descriptor, 0, os.SEEK_END)
            try:
                write_all(self._descriptor, data)
            except OSError:
                os.ftruncate(self._descriptor, before)  # no half frame before later ones
                raise

    def sync(self) -> None:
        """Make everything appended survive a power loss."""
        with storage(self.path, "sync"):
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with storage(self.path, "close"):  # network file systems may refuse data this late
                os.close(descriptor)
