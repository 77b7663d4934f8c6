"""Frames: the form of a journal's entries in its file. Only the modules of this folder use them.

A journal is one append-only file with the complete state of an unfinished run. It is a sequence of
frames, each written by a single ``write``::

    magic "DOJ1" | kind, 1 byte | payload length, 4 bytes | checksum of kind and payload, 8 bytes
    payload

A crash can only cut the last frame short. A reader skips a frame that fails its checksum and looks
for the next magic, so that damage costs only the spans that it hit. Frames that all others depend
on are written twice.

Every format has this envelope, and the kinds `FrameKind.ATTEMPT` and `FrameKind.COPY`. An attempt
names the format of the frames that follow it. If another kind of frame, or the content of one,
changes, raise `NUMBER`, and keep the reader of the format before in `READERS` of `journal_reader`.
"""

import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

import orjson
import xxhash

from dagster_dataops.checkpoints.journal.span import ReopenedEntry, SpansEntry, pack, unpack
from dagster_dataops.checkpoints.journal.span_notes import SpanNotes

NUMBER: Final = 6
FORMAT: Final = f"{NUMBER}-{sys.byteorder}"  # of journals, kept journals and manifests
MAGIC: Final = b"DOJ1"
_HEAD: Final = struct.Struct("<4sBIQ")
_PLACE: Final = struct.Struct("<IQI?")  # segment, offset, number of spans, whether notes precede
_NONE: Final = b"\0"  # a span without notes
_SOME: Final = b"\1"
_COMPRESS_FROM: Final = 4096  # bytes of notes
DIGEST: Final = 16  # bytes of the digest of a record's line


class FrameKind(IntEnum):
    """Kinds of frames."""

    ATTEMPT = 1  # JSON: the runs so far and the fingerprint of the latest, which continues here
    SPANS = 2  # spans whose outputs lie one after the other in one segment
    COPY = 4  # kind and payload of the frame before; used if that frame is damaged
    POSITION = 6  # a position of a stream
    STAGES = 7  # JSON: the stages of the stream
    DIGESTS = 8  # of the input records in the frame after it; each of its spans has one record
    REOPENED = 9  # starts of spans that count no more, as records in them are to be tried again
    NOTES = 10  # of the spans in the frame that follows


ABOUT_SPANS: Final = frozenset({FrameKind.DIGESTS, FrameKind.NOTES})


class JournalFrame(NamedTuple):
    """One frame that passed its checksum."""

    kind: int
    payload: bytes


def frame(kind: FrameKind, payload: bytes) -> bytes:
    """Return one frame as bytes."""
    return _HEAD.pack(MAGIC, kind, len(payload), _check(kind, payload)) + payload


def _check(kind: int, payload: bytes) -> int:
    return xxhash.xxh3_64_intdigest(payload, seed=kind)


def read_frames(data: bytes) -> Iterator[JournalFrame]:
    """Yield every whole frame of ``data``; damaged ones are skipped.

    Frames about the spans that follow are skipped, too, if the frame behind them is damaged.
    """
    before: JournalFrame | None = None
    about: list[JournalFrame] = []
    reached = 0
    for start, end, content in _whole_frames(data):
        if start != reached:
            about = []
        reached = end
        if content.kind in ABOUT_SPANS:
            about.append(content)
        elif content.kind != FrameKind.COPY:
            before = content
            yield from (*about, content)
            about = []
        elif content.payload:
            copied = JournalFrame(content.payload[0], content.payload[1:])
            if copied != before:
                yield copied
            before = None


def _whole_frames(data: bytes) -> Iterator[tuple[int, int, JournalFrame]]:
    """Yield the place of every whole frame, and the frame."""
    at = data.find(MAGIC)
    while 0 <= at <= len(data) - _HEAD.size:
        _, kind, length, check = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        payload = data[at + _HEAD.size : end]
        if len(payload) == length and _check(kind, payload) == check:
            yield at, end, JournalFrame(kind, payload)
            at = data.find(MAGIC, end)
        else:
            at = data.find(MAGIC, at + 1)


def spans_frame(entry: SpansEntry) -> bytes:
    """Return the frame of spans, after the frames of the digests of their input and their notes."""
    segment, offset, columns, digests, notes = entry
    place = _PLACE.pack(segment, offset, len(columns[0]), notes is not None)
    frames = frame(FrameKind.SPANS, place + pack(columns))
    if notes is not None:
        packed_notes = b"".join(_NONE if note is None else _SOME + note.pack() for note in notes)
        packed = (
            b"Z" + zlib.compress(packed_notes, 1)
            if len(packed_notes) >= _COMPRESS_FROM
            else b"R" + packed_notes
        )
        frames = frame(FrameKind.NOTES, place + packed) + frames
    if digests is not None:
        frames = frame(FrameKind.DIGESTS, place + b"".join(digests)) + frames
    return frames


def read_spans(payload: bytes, digests: bytes = b"", notes: bytes = b"") -> SpansEntry | None:
    """Return the spans of a frame, or ``None`` if it is malformed.

    Spans whose notes are missing or damaged count as damaged.

    Args:
        payload: Of the frame.
        digests: Payload of the digests frame before it; used if it is of these spans.
        notes: Payload of the notes frame before it; used if it is of these spans.
    """
    place = payload[: _PLACE.size]
    try:
        segment, offset, count, noted = _PLACE.unpack(place)
        spans = SpansEntry(segment, offset, unpack(payload[_PLACE.size :], count))
        if digests.startswith(place):
            spans = spans._replace(digests=_digests(digests[_PLACE.size :], count))
        if noted and not notes.startswith(place):
            return None
        return spans._replace(notes=_notes(notes[_PLACE.size :], count)) if noted else spans
    except (struct.error, zlib.error, ValueError):
        return None


def _digests(packed: bytes, count: int) -> list[bytes] | None:
    digests = [packed[at : at + DIGEST] for at in range(0, len(packed), DIGEST)]
    return digests if len(packed) == count * DIGEST else None


def _notes(packed: bytes, count: int) -> list[SpanNotes | None]:
    """Return the notes of spans."""
    packed_notes = zlib.decompress(packed[1:]) if packed[:1] == b"Z" else packed[1:]
    notes: list[SpanNotes | None] = []
    at = 0
    for _ in range(count):
        some, at = packed_notes[at : at + 1] == _SOME, at + 1
        note, at = SpanNotes.unpack(packed_notes, at) if some else (None, at)
        notes.append(note)
    if at != len(packed_notes):
        msg = f"{len(packed_notes)} bytes are not the notes of {count} spans"
        raise ValueError(msg)
    return notes


def json_frame(kind: FrameKind, content: dict[str, Any]) -> bytes:
    """Return the frame of a JSON object, and its copy."""
    payload = orjson.dumps(content)
    return frame(kind, payload) + frame(FrameKind.COPY, bytes([kind]) + payload)


def reopened_frame(starts: list[int], *, retries: bool) -> bytes:
    """Return the frame that revokes earlier spans that start at ``starts``."""
    return frame(FrameKind.REOPENED, bytes([retries]) + array("Q", starts).tobytes())


def read_reopened(payload: bytes) -> ReopenedEntry | None:
    """Return the spans that a frame revokes, or ``None`` if the payload is malformed."""
    starts = array("Q")
    if len(payload) % starts.itemsize != 1:
        return None
    starts.frombytes(payload[1:])
    return ReopenedEntry(starts.tolist(), retries=payload[0] == 1)
